// The kernels of cuda.backward.generic, for its own row and for the tiles that a tensor-core kernel
// leaves.
#pragma once

#include <string>
#include <vector>

#include "cuda/backward_call.h"

namespace onepass::cuda {

/// backward_delta and, where dsink is asked for, backward_sink.
void add_delta(const Problem& problem, std::vector<KernelSource>& sources);
Status start_delta(const Problem& problem, const void* call, BackwardLaunches& launches);

/// Whether dk or dv is asked for.
bool wants_keys(const Problem& problem);

/// backward_keys and backward_queries. With tile sizes in `again` they take the flagged tiles of
/// these sizes alone.
std::string keys_source(const Problem& problem, const Again& again);
std::string queries_source(const Problem& problem, const Again& again);
std::string keys_configuration(const Problem& problem, const Again& again);
std::string queries_configuration(const Problem& problem, const Again& again);
/// Tiles of all heads.
std::int64_t keys_blocks(const Problem& problem);
std::int64_t queries_blocks(const Problem& problem);

}  // namespace onepass::cuda
