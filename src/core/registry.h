// Every kernel there is: one row each. A kernel is reachable through its row only.
#pragma once

#include <span>
#include <string>

#include "core/problem.h"
#include "onepass/plan.h"

namespace onepass {

struct KernelRow {
  const char* name;  // "cpu.forward.avx512"
  Device::Kind device;
  /// Why this kernel cannot run the problem; empty = it can.
  std::string (*refuse)(const Problem&, const Capabilities&);
  /// Fills tile, splits and workspace_bytes for plan.threads threads.
  void (*layout)(const Problem&, Plan&);
  /// Runs it. Allocates nothing, prints nothing.
  Status (*launch)(const Problem&, const Plan&, const Exec&);
};

/// The kernels of a pass, in order of preference.
std::span<const KernelRow> registry(Pass pass);

/// The only place that chooses.
Result<Plan> make_plan(const Problem& problem, const Capabilities& capabilities);

/// The row that a plan names.
const KernelRow& row_of(const Plan& plan);

}  // namespace onepass
