#include "cli/llama/model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "onepass/kv_cache.h"

namespace onepass::cli::llama {
namespace {

constexpr float norm_epsilon = 1e-5f;
constexpr double rope_base = 10000.0;
constexpr std::int64_t page_size = 16;

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

void add(std::span<const float> from, std::vector<float>& to) {
  for (std::size_t i = 0; i < from.size(); ++i) to[i] += from[i];
}

}  // namespace

Model::Model(const Checkpoint& checkpoint, std::int64_t capacity, bool keep_trace, const Exec& exec)
    : checkpoint_(checkpoint), exec_(exec), capacity_(capacity) {
  const Shape& s = checkpoint.shape;
  const std::int64_t pages = (capacity + page_size - 1) / page_size;
  const std::array<std::int64_t, 4> kv_shape{s.layers, pages * page_size, s.kv_heads, s.head_dim()};
  const std::array<std::int64_t, 4> q_shape{s.layers, capacity, s.heads, s.head_dim()};
  k_pages_ = zeros(DType::float32, kv_shape);
  v_pages_ = zeros(DType::float32, kv_shape);
  block_table_.resize(index(pages));
  std::iota(block_table_.begin(), block_table_.end(), 0);
  // Pair i of a position turns by position * base^(-2i / head_dim).
  for (std::int64_t position = 0; position < capacity; ++position) {
    for (std::int64_t pair = 0; pair < s.head_dim() / 2; ++pair) {
      const double exponent = -2.0 * static_cast<double>(pair) / static_cast<double>(s.head_dim());
      const double angle = static_cast<double>(position) * std::pow(rope_base, exponent);
      cos_.push_back(static_cast<float>(std::cos(angle)));
      sin_.push_back(static_cast<float>(std::sin(angle)));
    }
  }
  logits_.resize(index(s.vocabulary));
  if (!keep_trace) return;
  q_trace_ = zeros(DType::float32, q_shape);
  o_trace_ = zeros(DType::float32, q_shape);
}

void Model::attend(std::int64_t layer, std::int64_t tokens) {
  const Shape& s = checkpoint_.shape;
  const Layer& weights = checkpoint_.layers[index(layer)];
  rms_norm(x_.data(), weights.attention_norm, tokens, normed_.data());
  multiply(normed_.data(), weights.wq, tokens, s.dim, q_.data());
  multiply(normed_.data(), weights.wk, tokens, s.dim, k_new_.data());
  multiply(normed_.data(), weights.wv, tokens, s.dim, v_new_.data());

  const auto pages = static_cast<std::int64_t>(block_table_.size());
  const std::int64_t layer_keys = layer * pages * page_size * s.kv_dim();
  const std::int64_t pairs = s.head_dim() / 2;
  KvCache cache;
  cache.k = {k_pages_.data<float>() + layer_keys, {pages, page_size, s.kv_heads, s.head_dim()}};
  cache.v = {v_pages_.data<float>() + layer_keys, {pages, page_size, s.kv_heads, s.head_dim()}};
  cache.seqlens = {&position_, DType::int64, {1}};
  cache.block_table = {block_table_.data(), DType::int32, {1, pages}};
  cache.k_new = {k_new_.data(), {1, tokens, s.kv_heads, s.head_dim()}};
  cache.v_new = {v_new_.data(), {1, tokens, s.kv_heads, s.head_dim()}};
  cache.rotary.cos = {cos_.data(), {capacity_, pairs}};
  cache.rotary.sin = {sin_.data(), {capacity_, pairs}};
  cache.rotary.interleaved = true;
  // The last query sees the last key, so the new tokens have the positions after those before.
  attention_kvcache({q_.data(), {1, tokens, s.heads, s.head_dim()}}, cache,
                    {o_.data(), {1, tokens, s.heads, s.head_dim()}}, {.mask = "causal"}, exec_);

  multiply(o_.data(), weights.wo, tokens, s.dim, step_.data());
  add(step_, x_);
  if (q_trace_.view.given()) keep_trace(layer, tokens);
}

// The queries as attention turned them, and its outputs.
void Model::keep_trace(std::int64_t layer, std::int64_t tokens) {
  const Shape& s = checkpoint_.shape;
  const std::int64_t at = (layer * capacity_ + position_) * s.dim;
  float* q = q_trace_.data<float>() + at;
  std::copy(q_.begin(), q_.end(), q);
  std::copy(o_.begin(), o_.end(), o_trace_.data<float>() + at);
  const std::int64_t pairs = s.head_dim() / 2;
  for (std::int64_t row = 0; row < tokens * s.heads; ++row, q += s.head_dim()) {
    const std::int64_t angles = (position_ + row / s.heads) * pairs;
    for (std::int64_t i = 0; i < pairs; ++i) {
      const float even = q[2 * i], odd = q[2 * i + 1];
      const float cosine = cos_[index(angles + i)], sine = sin_[index(angles + i)];
      q[2 * i] = even * cosine - odd * sine;
      q[2 * i + 1] = even * sine + odd * cosine;
    }
  }
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
  k_new_.resize(index(count * s.kv_dim()));
  v_new_.resize(k_new_.size());
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
  // Pages taken in order lie one after the other: keys as one tensor.
  const auto part = [&](const Array& array, std::int64_t rows, std::int64_t heads) {
    const float* data = array.data<float>() + layer * rows * heads * s.head_dim();
    return TensorView(data, {1, position_, heads, s.head_dim()});
  };
  const std::int64_t slots = static_cast<std::int64_t>(block_table_.size()) * page_size;
  return {part(q_trace_, capacity_, s.heads), part(k_pages_, slots, s.kv_heads),
          part(v_pages_, slots, s.kv_heads), part(o_trace_, capacity_, s.heads)};
}

}  // namespace onepass::cli::llama
