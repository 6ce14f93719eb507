// What the calls of forward and backward kernels share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "core/problem.h"
#include "onepass/plan.h"

namespace onepass::cuda {

inline constexpr std::size_t most_parameter_bytes = 4096;  // of a kernel, on every GPU

/// Constants of a kernel's own, as {"tile_rows", 16}.
using Constants = std::vector<std::pair<const char*, std::int64_t>>;

/// As in kernels/call_parts.cuh; no data where the tensor is not given.
struct Strided {
  void* data = nullptr;
  std::int64_t b = 0, s = 0, h = 0, d = 0;
};
Strided strided(const TensorView& x);       // (b, s, h, d)
Strided strided_rows(const TensorView& x);  // (b, h, s)
Strided per_head(const TensorView& x);      // (h)

/// As in kernels/call_parts.cuh.
struct CallShape {
  std::int64_t b, h_q, group, s_q, s_kv, q_start, k_start;
  std::uint64_t seed, offset, threshold;
  std::int64_t row0, col0;
  float scale, kept_scale;
};
CallShape shape_of(const Problem& problem);

/// The type's name in a kernel's text.
const char* element_name(DType dtype);

/// The call's, or the logit itself.
const lang::Program& score_of(const Problem& problem);

/// The parameters of the programs' texts, one after the other as in a kernel's Call.
void append_parameters(std::initializer_list<const lang::Program*> programs,
                       std::vector<std::byte>& call);

/// `constexpr int` lines.
std::string constants_text(const Constants& constants);

/// Integers of 32 bits do for every (sequence, query head). Reads no memory.
bool fits_int32(const Problem& problem, const lang::Program& program);

/// Why no GPU kernel takes the call, whatever its expressions; empty = none of these reasons.
std::string refuse_call(const Problem& problem, const Capabilities& capabilities);

}  // namespace onepass::cuda
