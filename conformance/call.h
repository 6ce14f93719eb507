// One call described once, for the library and for the reference alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "conformance/storage.h"
#include "onepass/onepass.h"
#include "reference/attention.h"

namespace onepass::conformance {

/// An array argument; values in row-major order.
struct NamedArray {
  DType dtype = DType::float32;
  std::vector<std::int64_t> shape;
  std::vector<double> values;
};

struct NamedArgument {
  std::string name;
  std::variant<bool, std::int64_t, double, NamedArray> value;
};

struct Shape {
  std::int64_t b = 1, h_q = 1, h_kv = 1, s_q = 1, s_kv = 1, d = 8, d_v = 8;
};

struct Call {
  DType dtype = DType::float32;
  DType out_dtype = DType::float32;
  reference::Tensor q, k, v;  // values of dtype: `in` rounds them
  Layout q_layout = Layout::seq_major, k_layout = Layout::seq_major;
  Layout v_layout = Layout::seq_major, o_layout = Layout::seq_major;
  std::string mask = "full";
  std::string score;
  std::string definitions;
  std::vector<NamedArgument> arguments;
  std::optional<double> scale;
  std::vector<double> sink;
  bool top_left = false;
  std::vector<std::int64_t> q_start, k_start;  // none, one number, or one per sequence
  Dropout dropout;
  /// Packed sequences: q, or k and v, are then (1, tokens, h, d).
  std::vector<std::int64_t> cu_seqlens_q, cu_seqlens_k;
  std::vector<std::int64_t> seqused_k;
  /// Rows of each sequence that are compared with the reference; empty = all.
  std::vector<std::int64_t> sample_rows;
  /// How to run just this call again, where its line does not say all.
  std::string repeat;

  /// b counts sequences; s_q and s_kv are those of the tensors.
  Shape shape() const;
  /// Changes both dtypes and rounds q, k and v.
  Call in(DType type) const;
  /// The problem line, with what it cannot say in parentheses: layouts, and how to repeat it.
  std::string line() const;
};

/// q = G(1, 4), k = G(2, 1), v = G(3, 1).
Call generated(const Shape& shape);

/// q = 0, k = G(2, 1), v = R + first: the output is the mean index of the visible keys, lse the
/// logarithm of their number.
Call counting(const Shape& shape, double first = 0.0);

/// The view of a (1, tokens, h, d) tensor as packed sequences have it.
TensorView without_batch(const TensorView& view);

/// Every element the same.
reference::Tensor filled(std::array<std::int64_t, 4> shape, double value);

/// What the library answered, in logical order.
struct Answer {
  bool ran = false;
  std::string error;  // why it did not run
  Code code = Code::ok;
  std::string kernel;         // the plan's
  std::vector<double> o;      // (b, s_q, h_q, d_v) or (1, tokens, h_q, d_v)
  std::vector<double> lse;    // (b, h_q, s_q) or (1, h_q, tokens)
  bool guards_held = true;    // nothing outside o and lse was written
  bool outputs_kept = false;  // nothing was written at all
};

/// Runs the library on outputs that hold NaN, between guards. On a GPU with copies of everything.
Answer run(const Call& call, int threads, Device device = {});

/// The reference, ready to compute rows. `call` must outlive it.
reference::Attention reference_of(const Call& call);

}  // namespace onepass::conformance
