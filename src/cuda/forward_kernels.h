// The GPU's forward kernels and their rows in the registry.
#pragma once

#include <span>

#include "core/registry.h"

namespace onepass::cuda {

extern const KernelRow forward_sm90, forward_sm80, forward_generic;

/// In order of preference.
std::span<const KernelRow> forward_kernels();

}  // namespace onepass::cuda
