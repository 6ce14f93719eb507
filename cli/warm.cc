// onepass warm: compiles the GPU kernels of problem lines ahead of time, into the cache or a pack.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/parts/case.h"
#include "cli/parts/line_help.h"
#include "cli/parts/options.h"
#include "cli/parts/outputs.h"
#include "cli/parts/print.h"
#include "cli/verbs.h"
#include "core/prepare.h"
#include "core/registry.h"
#include "cuda/device.h"
#include "cuda/kernel.h"
#include "cuda/machine_code.h"
#include "cuda/pack.h"

namespace onepass::cli {
namespace {

struct WarmOptions {
  std::vector<std::string> lines;
  std::string architectures, pack;
};

std::vector<Capabilities> chosen_cards(const std::string& architectures) {
  if (architectures.empty()) {
    const Result<Capabilities> here = cuda_capabilities();
    if (here.ok()) return {here.value()};
    throw Error(Status::invalid("--arch: not given, and no GPU is here to ask (" +
                                here.status().message +
                                "); names as in sm_90a,sm_80 are allowed; write some"));
  }
  std::vector<Capabilities> cards;
  for (std::string_view rest = architectures; !rest.empty();) {
    const std::string_view name = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    cards.push_back(value_of("--arch", cuda::capabilities_of(name)));
  }
  return cards;
}

Problem problem_on_gpu(const std::string& text) {
  ProblemLine line = value_of(parse_problem_line(text));
  line.device = {Device::Kind::cuda, 0};
  return problem_of(planned_on(line.device, make_case(line, false)));
}

// The kernel that a call takes, and before it those that a verdict speaks against: the call asks
// for their verdicts too.
std::vector<std::string> judged_kernels(const Plan& plan) {
  std::vector<std::string> names;
  for (const Refusal& verdict : plan.refused) names.push_back(verdict.kernel);
  names.push_back(plan.kernel);
  return names;
}

void pack_kernels(const Problem& problem, const Capabilities& card, Plan plan, cuda::Pack& pack) {
  const std::string architecture = cuda::architecture(card);
  for (const std::string& name : judged_kernels(plan)) {
    plan.kernel = name;
    const KernelRow& row = row_of(plan);
    if (row.sources == nullptr) continue;
    for (const cuda::KernelSource& source : row.sources(problem)) {
      const std::string text = source.source(problem);
      pack.add(text, architecture, value_of(cuda::machine_code(text, architecture)));
    }
  }
}

Plan compiled(const Problem& problem, const Capabilities& card) {
  Result<Plan> plan = compile(problem, card);
  if (plan.ok()) return plan.value();
  // Without a compiler it is not available here, whatever is wrong with the line.
  const Code code = cuda::nvrtc().ok() ? plan.status().code : Code::not_supported;
  throw Error({code, plan.status().message});
}

void warm(const WarmOptions& options) {
  const std::vector<Capabilities> cards = chosen_cards(options.architectures);
  std::vector<Problem> problems;
  for (const std::string& line : options.lines) problems.push_back(problem_on_gpu(line));
  Outputs outputs;
  if (!options.pack.empty()) outputs.claim("--out", options.pack);
  // Without a compiler all code comes from the pack that is given.
  cuda::Pack pack(cuda::nvrtc().ok()        ? cuda::nvrtc().value().major
                  : cuda::given_pack().ok() ? cuda::given_pack().value().cuda_major()
                                            : 0);
  for (const Problem& problem : problems) {
    for (const Capabilities& card : cards) {
      const auto start = std::chrono::steady_clock::now();
      const Plan plan = compiled(problem, card);
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      std::printf("%-7s %-28s %6.2f s  %s\n", cuda::architecture(card).c_str(), plan.kernel.c_str(),
                  seconds.count(), problem.line().c_str());
      for (const Refusal& verdict : plan.refused) {
        std::printf("        not %s: %s\n", verdict.kernel.c_str(), verdict.reason.c_str());
      }
      flush_stdout();
      if (!options.pack.empty()) pack_kernels(problem, card, plan, pack);
    }
  }
  if (options.pack.empty()) return;
  const std::string bytes = pack.bytes();
  outputs.put(options.pack, bytes);
  outputs.commit();
  std::fprintf(stderr, "%s: %zu kernels, %.1f KiB; use it with ONEPASS_PACK=%s\n",
               options.pack.c_str(), pack.size(), static_cast<double>(bytes.size()) / 1024.0,
               options.pack.c_str());
}

}  // namespace

void add_warm(CLI::App& app, int&) {
  CLI::App* verb = app.add_subcommand(
      "warm", "Compiles GPU kernels ahead of time, without a GPU: into the cache, or a pack");
  auto options = std::make_shared<WarmOptions>();
  verb->add_option("lines", options->lines,
                   "Problem lines, each one argument: \"fwd bf16 d=128 mask=causal\"")
      ->required();
  verb->add_option("--arch", options->architectures,
                   "As in sm_90a,sm_80; default: that of the GPU here");
  verb->add_option("-o,--out", options->pack,
                   "Also writes a pack, which ONEPASS_PACK names where NVRTC is absent");
  verb->footer(problem_line_help);
  verb->callback([options] { warm(*options); });
}

}  // namespace onepass::cli
