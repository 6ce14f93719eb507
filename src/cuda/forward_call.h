// What all forward kernels of a GPU are given, and what stands before their texts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cuda/call_parts.h"

namespace onepass::cuda {

/// The bytes of Call in kernels/forward_call.cuh. `section_heads`: how many neighbouring heads are
/// worked on together, where the kernel has such sections.
std::vector<std::byte> forward_call_bytes(const Problem& problem, std::int64_t section_heads = 1);

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

}  // namespace onepass::cuda
