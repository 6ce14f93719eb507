#include "core/prepare.h"

#include <utility>

#include "core/registry.h"
#include "cuda/device.h"
#include "cuda/kernel.h"

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
  Candidate(const Problem& problem, const Capabilities& capabilities, void* stream, Plan& plan)
      : problem_(problem), capabilities_(capabilities), stream_(stream), plan_(plan) {
    const KernelRow& row = row_of(plan);
    if (row.sources != nullptr) sources_ = row.sources(problem);
  }

  /// Why one of the kernels is a reason to take another candidate; empty = none is.
  Result<std::string> verdict() const {
    for (const KernelSource& source : sources_) {
      const cuda::CompileReport* report = cuda::find_kernel(source, capabilities_).report;
      if (report == nullptr) {
        if (Status s = check_not_captured(plan_, capabilities_, stream_); !s.ok()) return s;
        const auto compiled = cuda::compile_kernel(source, problem_, capabilities_);
        if (!compiled.ok()) return compiled.status();
        report = compiled.value();
      }
      if (std::string text = cuda::verdict_on(source, *report); !text.empty()) return text;
    }
    return std::string();
  }

  Status load() {
    for (const KernelSource& source : sources_) {
      const cuda::Kernel* kernel = cuda::find_kernel(source, capabilities_).ready;
      if (kernel == nullptr) {
        if (Status s = check_not_captured(plan_, capabilities_, stream_); !s.ok()) return s;
        const auto made = cuda::prepare_kernel(source, problem_, capabilities_);
        if (!made.ok()) return made.status();
        kernel = made.value();
      }
      plan_.kernels.push_back(kernel);
    }
    return {};
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

 private:
  const Problem& problem_;
  const Capabilities& capabilities_;
  void* const stream_;
  Plan& plan_;
  std::vector<KernelSource> sources_;
};

}  // namespace

Result<Plan> prepare(const Problem& problem, const Capabilities& capabilities, void* stream) {
  Result<Plan> plan = choose(problem, capabilities);
  while (plan.ok()) {
    Candidate candidate(problem, capabilities, stream, plan.value());
    if (candidate.find()) return plan;
    const Result<std::string> verdict = candidate.verdict();
    if (!verdict.ok()) return verdict.status();
    if (!verdict.value().empty()) {
      std::vector<Refusal> verdicts = plan.value().refused;
      verdicts.push_back({plan.value().kernel, verdict.value()});
      Result<Plan> next = choose(problem, capabilities, verdicts);
      if (next.ok()) {
        plan = std::move(next);
        continue;
      }
    }
    if (Status s = candidate.load(); !s.ok()) return s;
    return plan;
  }
  return plan;
}

}  // namespace onepass
