// onepass check: the conformance cases on this machine against float64, a row each.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/parts/case.h"
#include "cli/parts/options.h"
#include "cli/parts/print.h"
#include "cli/verbs.h"
#include "conformance/case.h"

namespace onepass::cli {
namespace {

struct CheckOptions {
  std::vector<std::string> names;
  std::string device = "cpu", threads = "0", shrink = "16", seed = "1", count = "100";
  bool list = false;
};

std::vector<conformance::Case> chosen_cases(const std::vector<std::string>& names) {
  std::vector<conformance::Case> chosen;
  for (const conformance::Case& one : conformance::cases()) {
    bool wanted = names.empty();
    for (const std::string& name : names) wanted |= std::string_view(one.name).starts_with(name);
    if (wanted) chosen.push_back(one);
  }
  if (!chosen.empty()) return chosen;
  throw Error(Status::invalid("cases: \"" + names.front() +
                              "\" begins no case's name; names as in D03 or random are allowed; "
                              "see them with: onepass check --list"));
}

void check(const CheckOptions& options, int& exit_code) {
  conformance::Settings settings;
  settings.device = device_of("--device", options.device);
  require_device(settings.device);
  settings.threads = threads_of("--threads", options.threads);
  settings.shrink = integer_of("--shrink", options.shrink, 1, 1 << 20);
  settings.seed = static_cast<std::uint32_t>(integer_of("--seed", options.seed, 0, UINT32_MAX));
  settings.count = integer_of("--count", options.count, 1, 1 << 30);
  const std::vector<conformance::Case> chosen = chosen_cases(options.names);
  if (options.list) {
    for (const conformance::Case& one : chosen) std::printf("%-30s %s\n", one.name, one.about);
    return;
  }
  int passed = 0, skipped = 0;
  for (const conformance::Case& one : chosen) {
    const auto start = std::chrono::steady_clock::now();
    const conformance::Outcome outcome = one.run(settings);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::printf("%s  %-30s %7.2f s  %s\n",
                outcome.skipped  ? "skip"
                : outcome.passed ? "pass"
                                 : "FAIL",
                one.name, seconds.count(), outcome.detail.c_str());
    flush_stdout();
    passed += outcome.passed, skipped += outcome.skipped;
  }
  const int failed = static_cast<int>(chosen.size()) - passed - skipped;
  std::printf("%d passed, %d failed", passed, failed);
  if (skipped > 0) std::printf(", %d skipped", skipped);
  std::printf("\n");
  if (failed > 0) exit_code = 1;
}

}  // namespace

void add_check(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand("check", "Every conformance case against float64");
  auto options = std::make_shared<CheckOptions>();
  verb->add_option("cases", options->names, "Cases whose names begin so (default: all)");
  verb->add_option("--device", options->device, "cpu (default), cuda or cuda:1");
  verb->add_option("--threads", options->threads, "Default OMP_NUM_THREADS, else every core");
  verb->add_option("--shrink", options->shrink,
                   "Divides the lengths of the workloads; 1 = full size (default 16)");
  verb->add_option("--seed", options->seed, "Of the first random problem (default 1)");
  verb->add_option("--count", options->count, "Random problems (default 100)");
  verb->add_flag("--list", options->list, "Says what each case looks for and runs none");
  verb->callback([options, &exit_code] { check(*options, exit_code); });
}

}  // namespace onepass::cli
