// A validated call: everything the planner and the kernels need, in one plain struct.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lang/program.h"
#include "onepass/attention.h"
#include "onepass/status.h"

namespace onepass {

/// First position of a sequence: a number, or an int32/int64 array of shape (b) read at run time.
struct StartOf {
  std::int64_t number = 0;
  TensorView array;  // given() when per sequence
  std::int64_t at(std::int64_t b) const;
};

struct Problem {
  DType dtype = DType::float32;
  DType out_dtype = DType::float32;
  Device device;
  std::int64_t b = 0, h_q = 0, h_kv = 0, group = 1;
  std::int64_t s_q = 0, s_kv = 0;
  std::int64_t d = 0, d_v = 0;
  TensorView q, k, v;  // (b, s, h, d)
  TensorView o;        // (b, s_q, h_q, d_v)
  TensorView lse;      // (b, h_q, s_q) or not given
  TensorView sink;     // (h_q) or not given
  double scale = 1.0;
  lang::Program mask;
  lang::Program score;
  std::string definitions;     // the caller's, for line() only
  std::vector<Argument> args;  // the caller's, for line() only
  bool has_mask = false;       // false = every key is visible
  bool has_score = false;      // false = the logit itself
  StartOf q_start, k_start;
  Dropout dropout;

  lang::Scope scope(std::int64_t batch, std::int64_t head) const;
  /// `fwd bf16 b=2 h=32/8 s=4096/4096 d=128 mask=causal`
  std::string line() const;
};

/// Checks shapes, dtypes, strides and options and compiles both expressions. Reads no memory, so
/// that a call can be planned before its tensors exist.
Result<Problem> validate(const TensorView& q, const TensorView& k, const TensorView& v,
                         const TensorView& o, const Attention& options);

/// Checks pointers and the values of host arrays: the rest of what the host can see, before a
/// launch.
Status validate_memory(const Problem& problem);

}  // namespace onepass
