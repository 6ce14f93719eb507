// The one way from a validated call to a kernel: plan -> prepare -> launch.
#pragma once

#include <utility>

#include "core/problem.h"
#include "onepass/exec.h"
#include "onepass/plan.h"

namespace onepass {

template <class T>
T value_or_throw(Result<T> result) {
  if (!result.ok()) throw Error(result.status());
  return std::move(result.value());
}

/// Throws Error, also when ONEPASS_ISA or `threads` asks for what is not here.
Plan plan_for(const Problem& problem, int threads);

/// The same, with its kernels ready on the device.
Plan prepare_for(const Problem& problem, int threads);

/// What run() does first: checks the memory, plans, prepares. Throws Error.
Plan prepare_to_run(const Problem& problem, const Exec& exec);

/// What run() does last: finds workspace for a prepared plan and launches it. Throws Error.
void start(const Problem& problem, const Plan& plan, const Exec& exec);

/// Checks the memory, plans, prepares, finds workspace, launches. Throws Error before anything is
/// written.
void run(const Problem& problem, const Exec& exec);

}  // namespace onepass
