// The GPU's backward kernels and their rows in the registry.
#pragma once

#include <span>

#include "core/registry.h"

namespace onepass::cuda {

extern const KernelRow sm80_backward_row, sm80_parts_backward_row;  // backward_sm80.cc
extern const KernelRow generic_backward_row;                        // backward_generic.cc

/// In order of preference.
std::span<const KernelRow> backward_kernels();

}  // namespace onepass::cuda
