// The GPU's backward kernels and their rows in the registry.
#pragma once

#include <span>

#include "core/registry.h"

namespace onepass::cuda {

/// In order of preference.
std::span<const KernelRow> backward_kernels();

}  // namespace onepass::cuda
