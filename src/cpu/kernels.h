// The CPU's rows of the registry.
#pragma once

#include <span>

#include "core/registry.h"

namespace onepass::cpu {

/// Forward kernels in order of preference, one for each instruction set.
std::span<const KernelRow> forward_kernels();

}  // namespace onepass::cpu
