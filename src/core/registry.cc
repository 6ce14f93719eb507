#include "core/registry.h"

#include <cstdlib>

#include "cpu/kernels.h"
#include "cuda/backward_kernels.h"
#include "cuda/forward_kernels.h"

namespace onepass {

std::span<const KernelRow> registry(Pass pass) {
  const auto joined = [](std::initializer_list<std::span<const KernelRow>> parts) {
    std::vector<KernelRow> all;
    for (const std::span<const KernelRow> some : parts) {
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  };
  static const std::vector<KernelRow> forward =
      joined({cpu::decode_kernels(), cpu::forward_kernels(), cuda::forward_kernels()});
  static const std::vector<KernelRow> backward =
      joined({cpu::backward_kernels(), cuda::backward_kernels()});
  return pass == Pass::forward ? forward : backward;
}

namespace {

std::string verdict_on(const KernelRow& row, std::span<const Refusal> verdicts) {
  for (const Refusal& verdict : verdicts) {
    if (verdict.kernel == row.name) return verdict.reason;
  }
  return {};
}

// ONEPASS_WITHOUT names it: kernels to do without, with commas between them.
bool done_without(const KernelRow& row) {
  static const char* const named = std::getenv("ONEPASS_WITHOUT");
  if (named == nullptr) return false;
  const std::string all = std::string(",") + named + ",";
  return all.find(std::string(",") + row.name + ",") != std::string::npos;
}

std::string refuse(const KernelRow& row, const Problem& problem, const Capabilities& capabilities,
                   std::span<const Refusal> verdicts) {
  std::string reason = row.refuse(problem, capabilities);
  if (reason.empty() && done_without(row)) return "ONEPASS_WITHOUT names it";
  return reason.empty() ? verdict_on(row, verdicts) : reason;
}

Status no_kernel(const Problem& problem, const Capabilities& capabilities,
                 std::span<const Refusal> verdicts) {
  std::string message = "attention: no kernel takes " + problem.line() + ";";
  for (const KernelRow& row : registry(problem.pass)) {
    if (row.device != problem.device.kind) continue;
    message += std::string(" ") + row.name + ": " + refuse(row, problem, capabilities, verdicts);
    message += ";";
  }
  return {Code::not_supported, message + " change what the reasons name"};
}

}  // namespace

Result<Plan> choose(const Problem& problem, const Capabilities& capabilities,
                    std::span<const Refusal> verdicts) {
  for (const KernelRow& row : registry(problem.pass)) {
    // Here only to save the words of a reason that nobody reads.
    if (row.device != problem.device.kind) continue;
    if (!refuse(row, problem, capabilities, verdicts).empty()) continue;
    Plan plan;
    plan.threads = capabilities.threads;
    plan.kernel = row.name;
    plan.refused.assign(verdicts.begin(), verdicts.end());
    row.layout(problem, plan);
    return plan;
  }
  return no_kernel(problem, capabilities, verdicts);
}

void explain_choice(const Problem& problem, const Capabilities& capabilities, Plan& plan) {
  const std::vector<Refusal> verdicts = std::move(plan.refused);
  plan.refused.clear();
  plan.problem_line = problem.line();
  plan.reason = "first in order of preference that takes the problem";
  for (const KernelRow& row : registry(problem.pass)) {
    if (plan.kernel == row.name) continue;
    std::string reason = refuse(row, problem, capabilities, verdicts);
    if (reason.empty()) reason = "can run it, but " + plan.kernel + " comes first";
    plan.refused.push_back({row.name, std::move(reason)});
  }
}

Result<Plan> make_plan(const Problem& problem, const Capabilities& capabilities) {
  Result<Plan> plan = choose(problem, capabilities);
  if (plan.ok()) explain_choice(problem, capabilities, plan.value());
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
