#include "core/prepare.h"

#include <functional>
#include <future>
#include <utility>

#include "core/registry.h"
#include "cuda/device.h"
#include "cuda/kernel.h"
#include "cuda/stream_memory.h"

namespace onepass {
namespace {

using cuda::KernelSource;

// Compiling and loading would break the capture.
Status check_not_captured(const Plan& plan, const Capabilities& capabilities, void* stream) {
  const Result<cuda::Driver>& driver = cuda::driver();
  if (!driver.ok()) return driver.status();
  const cuda::ContextScope context(driver.value(), capabilities.device.index);
  if (!context.status().ok()) return context.status();
  if (!driver.value().captures(stream)) return {};
  return {Code::not_prepared,
          "stream: is being captured, and " + plan.kernel +
              " is not compiled and loaded; what prepare() made ready may be captured; call "
              "prepare() with these arguments, or make this call once, before the capture"};
}

// One candidate's way to loaded kernels.
class Candidate {
 public:
  Candidate(const Problem& problem, const Capabilities& capabilities, Plan& plan)
      : problem_(problem), capabilities_(capabilities), plan_(plan), row_(row_of(plan)) {
    if (row_.sources != nullptr) sources_ = row_.sources(problem);
  }

  /// All are ready: nothing to compile, judge or load.
  bool find() {
    for (const KernelSource& source : sources_) {
      const cuda::Kernel* kernel = cuda::find_kernel(source, capabilities_).ready;
      if (kernel == nullptr) return plan_.kernels.clear(), false;
      plan_.kernels.push_back(kernel);
    }
    return true;
  }

  /// All are compiled.
  bool compiled() const {
    for (const KernelSource& source : sources_) {
      if (cuda::find_kernel(source, capabilities_).report == nullptr) return false;
    }
    return true;
  }

  /// Why one of the kernels is a reason to take another candidate; empty = none is. Compiles all of
  /// them at once.
  Result<std::string> verdict() const {
    std::vector<std::future<Result<const cuda::CompileReport*>>> reports;
    for (const KernelSource& source : sources_) {
      // Where no thread can be had, when its turn comes.
      const auto policy =
          sources_.size() > 1 ? std::launch::async | std::launch::deferred : std::launch::deferred;
      reports.push_back(std::async(policy, cuda::compile_kernel, source, std::cref(problem_),
                                   std::cref(capabilities_)));
    }
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      const KernelSource& source = sources_[i];
      const Result<const cuda::CompileReport*> report = reports[i].get();
      if (!report.ok()) return report.status();
      if (std::string text = cuda::verdict_on(source, *report.value()); !text.empty()) return text;
    }
    return std::string();
  }

  Status load() {
    if (!sources_.empty()) {
      if (Status s = cuda::prepare_memory(capabilities_.device.index); !s.ok()) return s;
    }
    for (const KernelSource& source : sources_) {
      const auto kernel = cuda::prepare_kernel(source, problem_, capabilities_);
      if (!kernel.ok()) return kernel.status();
      plan_.kernels.push_back(kernel.value());
    }
    return {};
  }

 private:
  const Problem& problem_;
  const Capabilities& capabilities_;
  Plan& plan_;
  const KernelRow& row_;
  std::vector<KernelSource> sources_;
};

// The next plan where a verdict speaks against this one and another kernel takes the problem.
Result<bool> make_way(const Candidate& candidate, const Problem& problem,
                      const Capabilities& capabilities, Plan& plan) {
  const Result<std::string> verdict = candidate.verdict();
  if (!verdict.ok()) return verdict.status();
  if (verdict.value().empty()) return false;
  std::vector<Refusal> verdicts = plan.refused;
  verdicts.push_back({plan.kernel, verdict.value()});
  Result<Plan> next = choose(problem, capabilities, verdicts);
  if (next.ok()) plan = std::move(next.value());
  return next.ok();
}

}  // namespace

Result<Plan> prepare(const Problem& problem, const Capabilities& capabilities, void* stream) {
  Result<Plan> chosen = choose(problem, capabilities);
  if (!chosen.ok()) return chosen;
  Plan& plan = chosen.value();
  while (true) {
    Candidate candidate(problem, capabilities, plan);
    if (candidate.find()) return chosen;
    if (!candidate.compiled()) {
      if (Status s = check_not_captured(plan, capabilities, stream); !s.ok()) return s;
    }
    const Result<bool> passed = make_way(candidate, problem, capabilities, plan);
    if (!passed.ok()) return passed.status();
    if (passed.value()) continue;
    if (Status s = check_not_captured(plan, capabilities, stream); !s.ok()) return s;
    if (Status s = candidate.load(); !s.ok()) return s;
    return chosen;
  }
}

Result<Plan> compile(const Problem& problem, const Capabilities& capabilities) {
  Result<Plan> plan = choose(problem, capabilities);
  while (plan.ok()) {
    const Candidate candidate(problem, capabilities, plan.value());
    const Result<bool> passed = make_way(candidate, problem, capabilities, plan.value());
    if (!passed.ok()) return passed.status();
    if (!passed.value()) break;
  }
  return plan;
}

}  // namespace onepass
