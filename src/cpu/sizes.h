// Sizes of a CPU forward: tiles, packed operands, scratch, workspace.
#pragma once

#include "core/problem.h"
#include "cpu/forward.h"
#include "onepass/plan.h"

namespace onepass::cpu {

/// Lengths as far as a plan can know them: it reads no memory.
struct Lengths {
  double mean_q, mean_kv;    // over the sequences; of partly used ones an upper bound
  std::int64_t most_groups;  // of 64 keys, of a head
  std::int64_t all_groups;   // over sequences and key/value heads
};
Lengths lengths_of(const Problem& problem);

/// Tile and number of threads for a problem; rows shrink before keys when there is little to share
/// out, and small problems get fewer threads. Changes no bit of any result.
void choose_tile(const Problem& problem, Isa isa, Plan& plan);

/// Everything else, a pure function of the problem, the form and the plan's tile and threads.
ForwardSizes forward_sizes(const Problem& problem, const Form& form, const Plan& plan);

}  // namespace onepass::cpu
