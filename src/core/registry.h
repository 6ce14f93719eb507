// Every kernel there is: one row each. A kernel is reachable through its row only.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/problem.h"
#include "onepass/plan.h"

namespace onepass {

namespace cuda {
struct KernelSource;
}

struct KernelRow {
  const char* name;  // "cpu.forward.avx512"
  Device::Kind device;
  /// Why this kernel cannot run the problem; empty = it can.
  std::string (*refuse)(const Problem&, const Capabilities&);
  /// Fills tile, splits and workspace_bytes for plan.threads threads.
  void (*layout)(const Problem&, Plan&);
  /// Runs it. Allocates nothing, prints nothing.
  Status (*launch)(const Problem&, const Plan&, const Exec&);
  /// Of a GPU: the kernels that launch finds in Plan::kernels, in this order.
  std::vector<cuda::KernelSource> (*sources)(const Problem&) = nullptr;
};

/// The kernels of a pass, in order of preference.
std::span<const KernelRow> registry(Pass pass);

/// The only place that chooses: the first row that takes the problem and that no verdict names. The
/// plan's words are left out but for the verdicts, which stand in `refused`.
Result<Plan> choose(const Problem& problem, const Capabilities& capabilities,
                    std::span<const Refusal> verdicts = {});

/// Writes a plan's words: its problem line, why this kernel, why no other.
void explain_choice(const Problem& problem, const Capabilities& capabilities, Plan& plan);

/// What choose() gives, with its words.
Result<Plan> make_plan(const Problem& problem, const Capabilities& capabilities);

/// The row that a plan names.
const KernelRow& row_of(const Plan& plan);

}  // namespace onepass
