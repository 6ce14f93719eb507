#include "cli/llama/model.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "onepass/attention.h"

namespace onepass::cli::llama {
namespace {

constexpr float norm_epsilon = 1e-5f;
constexpr double rope_base = 10000.0;

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

// Partial sums side by side, which the compiler can keep in vector registers.
float dot(const float* a, const float* b, std::int64_t n) {
  constexpr std::int64_t lanes = 16;
  std::array<float, lanes> sums{};
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (std::int64_t lane = 0; lane < lanes; ++lane)
      sums[index(lane)] += a[i + lane] * b[i + lane];
  }
  float total = 0.0f;
  for (; i < n; ++i) total += a[i] * b[i];
  for (const float sum : sums) total += sum;
  return total;
}

// y (rows, outs) = x (rows, ins) w^T, w (outs, ins). Each weight row is read once for all tokens.
void multiply(const float* x, std::span<const float> w, std::int64_t rows, std::int64_t ins,
              float* y) {
  const std::int64_t outs = static_cast<std::int64_t>(w.size()) / ins;
  for (std::int64_t out = 0; out < outs; ++out) {
    for (std::int64_t row = 0; row < rows; ++row) {
      y[row * outs + out] = dot(x + row * ins, w.data() + out * ins, ins);
    }
  }
}

void rms_norm(const float* x, std::span<const float> weight, std::int64_t rows, float* y) {
  const auto dim = static_cast<std::int64_t>(weight.size());
  for (std::int64_t row = 0; row < rows; ++row, x += dim, y += dim) {
    const float mean = dot(x, x, dim) / static_cast<float>(dim);
    const float factor = 1.0f / std::sqrt(mean + norm_epsilon);
    for (std::int64_t i = 0; i < dim; ++i) y[i] = weight[index(i)] * (factor * x[i]);
  }
}

// Turns each pair (2i, 2i + 1) of every head by position * base^(-2i / head_dim).
void rotate(float* x, std::int64_t rows, std::int64_t heads, std::int64_t head_dim,
            std::int64_t first_position) {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t pair = 0; pair < head_dim / 2; ++pair) {
      const double exponent = -2.0 * static_cast<double>(pair) / static_cast<double>(head_dim);
      const double angle =
          static_cast<double>(first_position + row) * std::pow(rope_base, exponent);
      const auto cosine = static_cast<float>(std::cos(angle));
      const auto sine = static_cast<float>(std::sin(angle));
      for (std::int64_t head = 0; head < heads; ++head) {
        float* at = x + (row * heads + head) * head_dim + 2 * pair;
        const float even = at[0], odd = at[1];
        at[0] = even * cosine - odd * sine;
        at[1] = even * sine + odd * cosine;
      }
    }
  }
}

void add(std::span<const float> from, std::vector<float>& to) {
  for (std::size_t i = 0; i < from.size(); ++i) to[i] += from[i];
}

}  // namespace

Model::Model(const Checkpoint& checkpoint, std::int64_t capacity, bool keep_trace, const Exec& exec)
    : checkpoint_(checkpoint), exec_(exec), capacity_(capacity) {
  const Shape& s = checkpoint.shape;
  const std::array<std::int64_t, 4> kv_shape{s.layers, capacity, s.kv_heads, s.head_dim()};
  const std::array<std::int64_t, 4> q_shape{s.layers, capacity, s.heads, s.head_dim()};
  k_cache_ = zeros(DType::float32, kv_shape);
  v_cache_ = zeros(DType::float32, kv_shape);
  logits_.resize(index(s.vocabulary));
  if (!keep_trace) return;
  q_trace_ = zeros(DType::float32, q_shape);
  o_trace_ = zeros(DType::float32, q_shape);
}

void Model::attend(std::int64_t layer, std::int64_t tokens) {
  const Shape& s = checkpoint_.shape;
  const Layer& weights = checkpoint_.layers[index(layer)];
  float* k_all = k_cache_.data<float>() + layer * capacity_ * s.kv_dim();
  float* v_all = v_cache_.data<float>() + layer * capacity_ * s.kv_dim();
  float* k_new = k_all + position_ * s.kv_dim();
  rms_norm(x_.data(), weights.attention_norm, tokens, normed_.data());
  multiply(normed_.data(), weights.wq, tokens, s.dim, q_.data());
  multiply(normed_.data(), weights.wk, tokens, s.dim, k_new);
  multiply(normed_.data(), weights.wv, tokens, s.dim, v_all + position_ * s.kv_dim());
  rotate(q_.data(), tokens, s.heads, s.head_dim(), position_);
  rotate(k_new, tokens, s.kv_heads, s.head_dim(), position_);

  // The last query sees the last key, so the new tokens sit at the end of the cache's positions.
  const std::int64_t seen = position_ + tokens;
  attention({q_.data(), {1, tokens, s.heads, s.head_dim()}},
            {k_all, {1, seen, s.kv_heads, s.head_dim()}},
            {v_all, {1, seen, s.kv_heads, s.head_dim()}},
            {o_.data(), {1, tokens, s.heads, s.head_dim()}}, {.mask = "causal"}, exec_);

  multiply(o_.data(), weights.wo, tokens, s.dim, step_.data());
  add(step_, x_);
  if (!q_trace_.view.given()) return;
  const std::int64_t at = (layer * capacity_ + position_) * s.dim;
  std::copy(q_.begin(), q_.end(), q_trace_.data<float>() + at);
  std::copy(o_.begin(), o_.end(), o_trace_.data<float>() + at);
}

void Model::feed_forward(const Layer& layer, std::int64_t tokens) {
  const Shape& s = checkpoint_.shape;
  rms_norm(x_.data(), layer.ffn_norm, tokens, normed_.data());
  multiply(normed_.data(), layer.w1, tokens, s.dim, gate_.data());
  multiply(normed_.data(), layer.w3, tokens, s.dim, up_.data());
  for (std::size_t i = 0; i < gate_.size(); ++i) {
    gate_[i] = gate_[i] / (1.0f + std::exp(-gate_[i])) * up_[i];
  }
  multiply(gate_.data(), layer.w2, tokens, s.hidden, step_.data());
  add(step_, x_);
}

std::span<const float> Model::forward(std::span<const std::int32_t> tokens) {
  const Shape& s = checkpoint_.shape;
  const auto count = static_cast<std::int64_t>(tokens.size());
  if (count < 1 || count > capacity_ - position_) {
    throw Error(Status::invalid(
        "tokens: " + std::to_string(count) + " after " + std::to_string(position_) + "; 1 to " +
        std::to_string(capacity_ - position_) + " more fit; use a shorter prompt"));
  }
  for (std::vector<float>* buffer : {&x_, &normed_, &q_, &o_, &step_}) {
    buffer->resize(index(count * s.dim));
  }
  gate_.resize(index(count * s.hidden));
  up_.resize(gate_.size());
  for (std::int64_t i = 0; i < count; ++i) {
    if (tokens[index(i)] < 0 || tokens[index(i)] >= s.vocabulary) {
      throw Error(Status::invalid("tokens: " + std::to_string(tokens[index(i)]) + "; 0 to " +
                                  std::to_string(s.vocabulary - 1) +
                                  " are in the vocabulary; use the tokenizer of this model"));
    }
    const auto row = checkpoint_.embedding.subspan(index(tokens[index(i)] * s.dim), index(s.dim));
    std::copy(row.begin(), row.end(), x_.begin() + i * s.dim);
  }
  for (std::int64_t layer = 0; layer < s.layers; ++layer) {
    attend(layer, count);
    feed_forward(checkpoint_.layers[index(layer)], count);
  }
  position_ += count;
  rms_norm(x_.data() + (count - 1) * s.dim, checkpoint_.final_norm, 1, normed_.data());
  multiply(normed_.data(), checkpoint_.head, 1, s.dim, logits_.data());
  return logits_;
}

Trace Model::trace(std::int64_t layer) const {
  const Shape& s = checkpoint_.shape;
  const auto part = [&](const Array& array, std::int64_t heads) {
    const float* data = array.data<float>() + layer * capacity_ * heads * s.head_dim();
    return TensorView(data, {1, position_, heads, s.head_dim()});
  };
  return {part(q_trace_, s.heads), part(k_cache_, s.kv_heads), part(v_cache_, s.kv_heads),
          part(o_trace_, s.heads)};
}

}  // namespace onepass::cli::llama
