// The stage between plan and launch: the plan's kernels compiled and loaded. Nothing else does
// that.
#pragma once

#include "core/problem.h"
#include "onepass/plan.h"

namespace onepass {

/// The plan of a call, chosen and with its kernels ready on the device; its words are left out, as
/// choose() does. A candidate whose code spills registers, or whose compiler ignored what makes it
/// fast, makes way for the next one, with the verdict as its reason; the last one is taken as it
/// is. Warm, it finds everything in memory. Code::not_prepared where something is to be compiled or
/// loaded while `stream` is being captured.
Result<Plan> prepare(const Problem& problem, const Capabilities& capabilities,
                     void* stream = nullptr);

/// The same ahead of time: compiled for the architecture of `capabilities`, not loaded. No GPU is
/// needed.
Result<Plan> compile(const Problem& problem, const Capabilities& capabilities);

}  // namespace onepass
