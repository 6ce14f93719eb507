// The GPU's forward kernels and their rows in the registry.
#pragma once

#include <span>
#include <string>

#include "core/registry.h"

namespace onepass::cuda {

/// In order of preference.
std::span<const KernelRow> forward_kernels();

/// The source of cuda.forward.generic for a problem: its element types, head dims, mask and score.
std::string generic_forward_source(const Problem& problem);

}  // namespace onepass::cuda
