// Sizes of a CPU forward: tiles, packed operands, scratch, workspace.
#pragma once

#include "core/problem.h"
#include "cpu/forward.h"
#include "onepass/plan.h"

namespace onepass::cpu {

/// Tile and number of threads for a problem; rows shrink before keys when there is little to share
/// out, and small problems get fewer threads. Changes no bit of any result.
void choose_tile(const Problem& problem, Isa isa, Plan& plan);

/// Everything else, a pure function of the problem, the form and the plan's tile and threads.
ForwardSizes forward_sizes(const Problem& problem, const Form& form, const Plan& plan);

}  // namespace onepass::cpu
