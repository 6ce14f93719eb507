// Attention by the book in float64: every score, one softmax, one sum. What every kernel is held
// to.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reference/expression.h"
#include "reference/philox.h"
#include "reference/rounding.h"

namespace onepass::reference {

/// (b, s, h, d) in row-major order.
struct Tensor {
  std::array<std::int64_t, 4> shape{};
  std::vector<double> data;
  double at(std::int64_t b, std::int64_t s, std::int64_t h, std::int64_t i) const {
    const std::int64_t place = ((b * shape[1] + s) * shape[2] + h) * shape[3] + i;
    return data[static_cast<std::size_t>(place)];
  }
};

struct Options {
  std::string mask = "full";
  std::string score{};  // empty = the logit itself
  std::string definitions{};
  std::vector<Argument> arguments{};
  std::optional<double> scale{};  // default 1 / sqrt(d)
  std::vector<double> sink{};     // one logit per query head, or none
  bool top_left = false;
  /// First positions: empty = default, one number, or one per sequence.
  std::vector<std::int64_t> q_start{}, k_start{};
  Dropout dropout{};
  /// Packed sequences: where each begins, and the end of the last. q (and o) or k and v are then
  /// (1, tokens, h, d). Empty = not packed.
  std::vector<std::int64_t> cu_seqlens_q{}, cu_seqlens_k{};
  std::vector<std::int64_t> seqused_k{};  // keys in use of each sequence; empty = all
};

/// Where the rows of one sequence lie in the tensors.
struct Sequence {
  std::int64_t q_batch = 0, q_row = 0, s_q = 0;
  std::int64_t k_batch = 0, k_row = 0, s_kv = 0;
};

/// One output row of one head.
struct Row {
  std::vector<double> o;
  double lse = 0.0;
  // lse = max + ln sum keeps no digit of ln sum where max is large.
  double max = 0.0, sum = 1.0;
};

/// One call. Keeps pointers to q, k and v. Throws std::invalid_argument.
class Attention {
 public:
  Attention(const Tensor& q, const Tensor& k, const Tensor& v, const Options& options);

  /// Row `row` of query head `h` in sequence `b`, in float64.
  Row row(std::int64_t b, std::int64_t h, std::int64_t row) const;

  /// The same by a plain unfused kernel for inputs of `format`: float32 scores and sums (float64
  /// for float64), weights rounded to `format`. Its error is the yardstick of 16-bit tolerances.
  Row plain_row(Format format, std::int64_t b, std::int64_t h, std::int64_t row) const;

  std::int64_t sequences() const;
  Sequence sequence(std::int64_t b) const;

  /// The pair as the expressions see it, `s` unset.
  Pair pair(std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t col) const;

  struct Logit {
    Pair pair;  // with the scaled logit
    double s;   // what the score makes of it
  };
  /// The visible keys of a row with their logits; every step rounded to `format`.
  std::vector<Logit> logits(Format format, std::int64_t b, std::int64_t h, std::int64_t row) const;
  /// Row `row` from its logits.
  Row attend(const std::vector<Logit>& visible, Format sums, Format weights, std::int64_t b,
             std::int64_t h, std::int64_t row) const;

  double scale() const { return scale_; }
  const Expression* score() const { return score_.get(); }  // null = the logit itself

 private:
  const Tensor &q_, &k_, &v_;
  Options options_;
  double scale_ = 1.0;
  std::shared_ptr<const Expression> mask_, score_;
};

struct Result {
  Tensor o;                 // (b, s_q, h_q, d_v)
  std::vector<double> lse;  // (b, h_q, s_q); of packed queries (h_q, tokens)
};

/// Every row.
Result attention(const Tensor& q, const Tensor& k, const Tensor& v, const Options& options = {});

/// Attention over the union of two disjoint key sets from the results over each.
Result merge(const Result& a, const Result& b);

}  // namespace onepass::reference
