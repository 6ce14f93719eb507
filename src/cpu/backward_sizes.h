// Sizes of a CPU backward: tiles, key ranges, scratch, workspace.
#pragma once

#include "core/problem.h"
#include "cpu/backward.h"
#include "onepass/plan.h"

namespace onepass::cpu {

/// Tile, number of threads and of key ranges for a problem. Threads and rows change no bit of any
/// result; keys and ranges are a function of instruction set, dtype, head dims and lengths only.
void choose_backward_tile(const Problem& problem, Isa isa, Plan& plan);

/// Keys of a work item for a sequence of s_kv keys, a multiple of tile_keys.
std::int64_t range_keys_of(const Problem& problem, std::int64_t s_kv, std::int64_t tile_keys);

/// Everything else, a pure function of the problem, the form and the plan's tile and threads.
/// The workspace is O(s) of the heads at hand, as few as keep the threads busy: for each query 2
/// numbers, and d sums for each of at most 16 key ranges (4 of packed sequences); and each thread's
/// scratch. `forward` gets what a BackwardCall's forward needs.
BackwardSizes backward_sizes(const Problem& problem, const Form& form, const Plan& plan,
                             ForwardSizes* forward);

}  // namespace onepass::cpu
