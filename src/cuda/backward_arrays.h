// Gradients of arrays that the score reads, on a GPU: in a fixed order and without atomics, as
// cpu/array_sums.h does it on the CPU. Blocks form chains: a chain adds its tiles one after the
// other, and no two chains add to the same numbers, for each has a copy of them or owns some.
#pragma once

#include <cstdint>
#include <vector>

#include "cuda/backward_call.h"

namespace onepass::cuda {

/// Workspace of all dargs.
std::int64_t array_sums_bytes(const Problem& problem);

/// The kernels of all dargs, in the order they run.
std::vector<KernelSource> array_sources(const Problem& problem);

/// After backward_delta. `sums` is array_sums_bytes of device memory.
Status launch_arrays(const Problem& problem, void* workspace, void* sums,
                     BackwardLaunches& launches);

}  // namespace onepass::cuda
