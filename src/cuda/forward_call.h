// What all forward kernels of a GPU are given, and what stands before their texts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cuda/call_parts.h"

namespace onepass::cuda {

/// The bytes of Call in kernels/forward_call.cuh. `section_heads`: how many neighbouring heads are
/// worked on together, where the kernel has such sections. `first_column`: of v and o, where the
/// kernel begins.
std::vector<std::byte> forward_call_bytes(const Problem& problem, std::int64_t section_heads = 1,
                                          std::int64_t first_column = 0);

/// How many they are.
std::size_t forward_call_size(const Problem& problem);

/// How a kernel wants the generated texts: integers of 32 bits where all of them fit, from which
/// the limits of the keys come.
struct ForwardTexts {
  bool mask_int32 = false, score_int32 = false;
};
/// What every (sequence, head) of the problem allows.
ForwardTexts narrow_texts(const Problem& problem);

/// Everything before a kernel's own text: element types, head dims, what the call has, the texts.
std::string forward_preamble(const Problem& problem, const Constants& constants,
                             const ForwardTexts& texts);

/// What the preamble is made from, in few bytes: KernelSource::configuration.
std::string forward_configuration(const Problem& problem, const Constants& constants,
                                  const ForwardTexts& texts);

/// A reason why no GPU kernel takes the forward; empty = none.
std::string refuse_forward(const Problem& problem, const Capabilities& capabilities);

/// A reason why q, k or v cannot be copied 16 bytes at a time; empty = none.
std::string refuse_inputs(const Problem& problem);

/// Sums and comparisons alone, which become limits of the keys: boundary tiles need no more code.
bool only_compares(const lang::Program& mask);

/// Two neighbours of o can be stored at once; eight of 16 bits, a row of which has no others.
bool stores_pairs(const TensorView& o);
bool stores_blocks(const TensorView& o);

/// How many neighbouring heads are worked on together.
std::int64_t section_heads(const Problem& problem);

}  // namespace onepass::cuda
