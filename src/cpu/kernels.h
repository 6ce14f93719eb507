// The CPU's rows of the registry.
#pragma once

#include <span>

#include "core/registry.h"
#include "cpu/forward.h"

namespace onepass::cpu {

/// Forward kernels in order of preference, one for each instruction set.
std::span<const KernelRow> forward_kernels();
/// Those for few queries over long keys.
std::span<const KernelRow> decode_kernels();
std::span<const KernelRow> backward_kernels();

/// Why this machine's kernels for an instruction set cannot run a problem; empty = they can.
std::string refuse_isa(const Problem& problem, const Capabilities& capabilities, Isa isa);

/// A (b, s, h, d) tensor, and one of shape (b, h, s).
Strided strided(const TensorView& view);
Strided strided_rows(const TensorView& view);

/// The scale in two factors that the type of the sums can hold. `q`, a power of 2, goes into Q: 1,
/// but where the scale is beyond that type. A scale that no sum could tell from 0 is all in `q`.
struct ScaleFactors {
  double q = 1.0, rest = 1.0;
};
ScaleFactors scale_factors(const Problem& problem);

/// The tensors and expressions of a problem; `sizes` and the wave are left for the caller.
ForwardCall forward_call(const Problem& problem, void* workspace);

}  // namespace onepass::cpu
