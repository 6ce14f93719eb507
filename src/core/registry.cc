#include "core/registry.h"

#include "cpu/kernels.h"
#include "cuda/forward_kernels.h"

namespace onepass {

std::span<const KernelRow> registry(Pass pass) {
  static const std::vector<KernelRow> forward = [] {
    std::vector<KernelRow> all;
    for (const std::span<const KernelRow> some :
         {cpu::decode_kernels(), cpu::forward_kernels(), cuda::forward_kernels()}) {
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }();
  if (pass == Pass::forward) return forward;
  return cpu::backward_kernels();
}

Result<Plan> make_plan(const Problem& problem, const Capabilities& capabilities) {
  Plan plan;
  plan.threads = capabilities.threads;
  plan.problem_line = problem.line();
  const KernelRow* chosen = nullptr;
  for (const KernelRow& row : registry(problem.pass)) {
    std::string reason = row.refuse(problem, capabilities);
    if (reason.empty() && chosen == nullptr) {
      chosen = &row;
      continue;
    }
    if (reason.empty()) reason = std::string("can run it, but ") + chosen->name + " comes first";
    plan.refused.push_back({row.name, std::move(reason)});
  }
  if (chosen == nullptr) {
    std::string message = "attention: no kernel takes " + plan.problem_line + ";";
    for (const Refusal& refusal : plan.refused) {
      message += " " + refusal.kernel + ": " + refusal.reason + ";";
    }
    return Status{Code::not_supported, message + " change what the reasons name"};
  }
  plan.kernel = chosen->name;
  plan.reason = "first in order of preference that takes the problem";
  chosen->layout(problem, plan);
  return plan;
}

const KernelRow& row_of(const Plan& plan) {
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    for (const KernelRow& row : registry(pass)) {
      if (plan.kernel == row.name) return row;
    }
  }
  throw Error({Code::runtime_error, "plan: kernel '" + plan.kernel +
                                        "' is not in the registry; a plan comes from plan(); call "
                                        "plan() again"});
}

}  // namespace onepass
