#include "reference/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace onepass::reference {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

void need(bool condition, const char* what) {
  if (!condition) throw std::invalid_argument(what);
}

std::int64_t start(const std::vector<std::int64_t>& given, std::int64_t b, std::int64_t otherwise) {
  if (given.empty()) return otherwise;
  return given.size() == 1 ? given[0] : given[static_cast<std::size_t>(b)];
}

}  // namespace

Attention::Attention(const Tensor& q, const Tensor& k, const Tensor& v, const Options& options)
    : q_(q), k_(k), v_(v), options_(options) {
  need(k.shape[0] == v.shape[0] && k.shape[0] == (options.cu_seqlens_k.empty() ? sequences() : 1) &&
           q.shape[0] == (options.cu_seqlens_q.empty() ? sequences() : 1),
       "batch sizes differ");
  need(k.shape[1] == v.shape[1] && k.shape[2] == v.shape[2], "k and v differ");
  for (std::int64_t b = 0; b < sequences(); ++b) {
    const Sequence at = sequence(b);
    need(at.s_q >= 0 && at.q_batch < q.shape[0] && at.q_row + at.s_q <= q.shape[1] &&
             at.s_kv >= 0 && at.k_batch < k.shape[0] && at.k_row + at.s_kv <= k.shape[1],
         "a sequence does not lie in the tensors");
  }
  need(q.shape[3] == k.shape[3], "head dims of q and k differ");
  need(k.shape[2] == 0 ? q.shape[2] == 0 : q.shape[2] % k.shape[2] == 0, "heads do not divide");
  need(options.sink.empty() || options.sink.size() == static_cast<std::size_t>(q.shape[2]),
       "sink needs one logit per query head");
  const double d = static_cast<double>(q.shape[3]);
  scale_ = options.scale.value_or(d == 0.0 ? 1.0 : 1.0 / std::sqrt(d));
  mask_ = std::make_shared<Expression>(options.mask, Kind::mask, options.arguments,
                                       options.definitions);
  if (!options.score.empty()) {
    score_ = std::make_shared<Expression>(options.score, Kind::score, options.arguments,
                                          options.definitions);
  }
}

std::int64_t Attention::sequences() const {
  const auto& packed = options_.cu_seqlens_q;
  return packed.empty() ? q_.shape[0] : static_cast<std::int64_t>(packed.size()) - 1;
}

Sequence Attention::sequence(std::int64_t b) const {
  const auto i = static_cast<std::size_t>(b);
  Sequence at{b, 0, q_.shape[1], b, 0, k_.shape[1]};
  if (const auto& cu = options_.cu_seqlens_q; !cu.empty()) {
    at.q_batch = 0, at.q_row = cu.at(i), at.s_q = cu.at(i + 1) - cu.at(i);
  }
  if (const auto& cu = options_.cu_seqlens_k; !cu.empty()) {
    at.k_batch = 0, at.k_row = cu.at(i), at.s_kv = cu.at(i + 1) - cu.at(i);
  }
  if (!options_.seqused_k.empty()) at.s_kv = options_.seqused_k.at(i);
  return at;
}

Pair Attention::pair(std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t col) const {
  Pair pair;
  pair.b = b, pair.h = h, pair.row = row, pair.col = col;
  pair.h_kv = h / (q_.shape[2] / k_.shape[2]);
  const Sequence at = sequence(b);
  pair.s_q = at.s_q, pair.s_kv = at.s_kv;
  pair.q = row + start(options_.q_start, b, options_.top_left ? 0 : pair.s_kv - pair.s_q);
  pair.k = col + start(options_.k_start, b, 0);
  pair.token_q = at.q_batch * q_.shape[1] + at.q_row + row;
  pair.token_k = at.k_batch * k_.shape[1] + at.k_row + col;
  return pair;
}

std::vector<Attention::Logit> Attention::logits(Format format, std::int64_t b, std::int64_t h,
                                                std::int64_t row) const {
  std::vector<Logit> visible;
  const Sequence at = sequence(b);
  for (std::int64_t col = 0; col < at.s_kv; ++col) {
    Pair p = pair(b, h, row, col);
    if (!mask_->visible(p)) continue;
    double dot = 0.0;
    for (std::int64_t i = 0; i < q_.shape[3]; ++i) {
      const double product =
          q_.at(at.q_batch, at.q_row + row, h, i) * k_.at(at.k_batch, at.k_row + col, p.h_kv, i);
      dot = round_to(format, dot + round_to(format, product));
    }
    p.s = round_to(format, scale_ * dot);
    const double s = score_ ? round_to(format, score_->score(p)) : p.s;
    if (s != -infinity) visible.push_back({p, s});
  }
  return visible;
}

// o = sum_j exp(s_j - m) v_j / l, l = sum_j exp(s_j - m), lse = m + ln l, m = max_j s_j. The sink
// is one more term of l, all of it when it is infinite. No visible key: o = 0, lse = sink or -inf.
Row Attention::attend(const std::vector<Logit>& visible, Format sums, Format weights,
                      std::int64_t b, std::int64_t h, std::int64_t row) const {
  const double sink =
      options_.sink.empty() ? -infinity : options_.sink[static_cast<std::size_t>(h)];
  Row result{std::vector<double>(static_cast<std::size_t>(v_.shape[3]), 0.0), sink, sink};
  if (visible.empty()) return result;

  double max = sink;
  for (const Logit& logit : visible) {
    if (logit.s > max) max = logit.s;
  }
  double sum = sink == -infinity ? 0.0 : sink == max ? 1.0 : round_to(sums, std::exp(sink - max));
  for (const Logit& logit : visible) {
    sum = round_to(sums, sum + round_to(sums, std::exp(logit.s - max)));
  }
  result.lse = round_to(sums, max + std::log(sum));
  result.max = max;
  result.sum = sum;

  const Dropout& dropout = options_.dropout;
  const Sequence at = sequence(b);
  const std::int64_t h_kv = pair(b, h, row, 0).h_kv;
  for (const Logit& logit : visible) {
    double weight = round_to(weights, round_to(sums, std::exp(logit.s - max)) / sum);
    if (dropout.p > 0.0) {
      if (!kept(dropout, b, h, row, logit.pair.col)) continue;  // left out, not multiplied by 0
      weight = round_to(weights, weight / (1.0 - dropout.p));
    }
    for (std::int64_t i = 0; i < v_.shape[3]; ++i) {
      const double v = v_.at(at.k_batch, at.k_row + logit.pair.col, h_kv, i);
      double& o = result.o[static_cast<std::size_t>(i)];
      o = round_to(sums, o + round_to(sums, weight * v));
    }
  }
  return result;
}

Row Attention::row(std::int64_t b, std::int64_t h, std::int64_t row) const {
  const Format sums = Format::float64;
  return attend(logits(sums, b, h, row), sums, sums, b, h, row);
}

Row Attention::plain_row(Format format, std::int64_t b, std::int64_t h, std::int64_t row) const {
  const Format sums = format == Format::float64 ? Format::float64 : Format::float32;
  return attend(logits(sums, b, h, row), sums, format, b, h, row);
}

Result attention(const Tensor& q, const Tensor& k, const Tensor& v, const Options& options) {
  const Attention call(q, k, v, options);
  const std::int64_t s_q = q.shape[1], h_q = q.shape[2], d_v = v.shape[3];
  Result result;
  result.o.shape = {q.shape[0], s_q, h_q, d_v};
  result.o.data.resize(static_cast<std::size_t>(q.shape[0] * s_q * h_q * d_v));
  result.lse.resize(static_cast<std::size_t>(q.shape[0] * h_q * s_q));
  for (std::int64_t b = 0; b < call.sequences(); ++b) {
    const Sequence at = call.sequence(b);
    for (std::int64_t head = 0; head < h_q; ++head) {
      for (std::int64_t row = 0; row < at.s_q; ++row) {
        const Row out = call.row(b, head, row);
        const std::int64_t place = ((at.q_batch * s_q + at.q_row + row) * h_q + head) * d_v;
        std::copy(out.o.begin(), out.o.end(), result.o.data.begin() + place);
        const std::int64_t line = (at.q_batch * h_q + head) * s_q + at.q_row + row;
        result.lse[static_cast<std::size_t>(line)] = out.lse;
      }
    }
  }
  return result;
}

Result merge(const Result& a, const Result& b) {
  Result merged = a;
  const auto [batches, s_q, h_q, d_v] = a.o.shape;
  for (std::size_t i = 0; i < merged.lse.size(); ++i) {
    const double x = a.lse[i], y = b.lse[i];
    if (y == -infinity) continue;
    const double max = x > y ? x : y;
    merged.lse[i] = max + std::log(std::exp(x - max) + std::exp(y - max));
    const auto place = static_cast<std::int64_t>(i);
    const std::int64_t row = place % s_q, head = place / s_q % h_q, batch = place / s_q / h_q;
    for (std::int64_t j = 0; j < d_v; ++j) {
      const auto at = static_cast<std::size_t>(((batch * s_q + row) * h_q + head) * d_v + j);
      const double from_a = x == -infinity ? 0.0 : std::exp(x - merged.lse[i]) * a.o.data[at];
      merged.o.data[at] = from_a + std::exp(y - merged.lse[i]) * b.o.data[at];
    }
  }
  return merged;
}

}  // namespace onepass::reference
