// onepass profile: attention by hand with its full score matrix, beside the fused call.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/parts/answer.h"
#include "cli/parts/case.h"
#include "cli/parts/comparison.h"
#include "cli/parts/line_help.h"
#include "cli/parts/memory.h"
#include "cli/parts/options.h"
#include "cli/verbs.h"

namespace onepass::cli {
namespace {

struct ProfileOptions {
  std::vector<std::string> line;
  std::string device, runs = "10", threads = "0";
};

double mebibytes(std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

void print_row(const char* name, double seconds, std::int64_t bytes, double flops) {
  std::printf("  %-22s %10.3f %12.1f", name, seconds * 1e3, mebibytes(bytes));
  if (flops > 0.0) std::printf(" %10.1f", flops / seconds * 1e-9);
  std::printf("\n");
}

std::string measured(std::int64_t bytes) {
  char text[32];
  if (bytes < 0) return "not measured";
  std::snprintf(text, sizeof text, "%.1f MiB", mebibytes(bytes));
  return text;
}

void profile(const ProfileOptions& options, int& exit_code) {
  const ProblemLine line = line_on(options.device, options.line);
  if (line.pass == Pass::backward) {
    throw Error(Status::invalid(
        "line: begins with bwd; fwd is allowed, as the steps by hand are a forward's; write fwd"));
  }
  if (line.q_lens || line.k_lens || line.k_used || line.page) {
    throw Error(Status::invalid(
        "line: has q_lens, k_lens, k_used or page; none of them is allowed, as the steps by hand "
        "take sequences of one length; leave them out, or use bench"));
  }
  require_device(line.device);
  const int threads = threads_of("--threads", options.threads);
  const auto runs = static_cast<int>(integer_of("--runs", options.runs, 1, 10000));
  const double pairs = static_cast<double>(line.b) * static_cast<double>(line.h_q) *
                       static_cast<double>(line.s_q) * static_cast<double>(line.s_kv);
  require_memory("q, k, v, o, copies of them and the whole score matrix",
                 checked_tensor_bytes(line) + 4.0 * pairs);
  const Case made = make_case(line, true);
  const Comparison c =
      compare(made.q, made.k, made.v, made.o, made.options, threads, runs, line.device);
  const Answer answer = check_answer(made.q, made.k, made.v, made.o, made.options);

  std::printf("%s\n%d threads, %d and %d runs (median), cache warm\n\n",
              c.plan.problem_line.c_str(), c.plan.threads, c.manual_runs, c.fused.runs);
  std::printf("  %-22s %10s %12s %10s\n", "", "ms", "MiB moved", "GFLOP/s");
  const bool on_gpu = line.device.kind == Device::Kind::cuda;
  std::printf("by hand%s, float32, whole score matrix\n", on_gpu ? " on the CPU" : "");
  for (const ManualStep& step : c.manual.steps) {
    const bool product = &step == &c.manual.steps[0] || &step == &c.manual.steps[3];
    const auto width = static_cast<double>(&step == &c.manual.steps[0] ? line.d : line.d_v);
    print_row(step.name, step.seconds, step.bytes_moved, product ? 2.0 * pairs * width : 0.0);
  }
  print_row("together", c.manual.seconds(), c.manual.bytes_moved(), 0.0);
  std::printf("onepass, %s\n", c.plan.kernel.c_str());
  print_row("one pass", c.fused.median_s, c.fused_bytes_moved, c.flops);
  std::printf("\nmemory beyond inputs and outputs\n");
  std::printf("  by hand  %s, measured %s\n", measured(c.manual_bytes).c_str(),
              measured(c.manual_peak_bytes).c_str());
  std::printf("  onepass  %s, measured %s\n", measured(c.plan.workspace_bytes).c_str(),
              measured(c.fused_peak_bytes).c_str());
  std::printf("\nspeed-up %.2fx; %.1f %% of the pairs are visible\n",
              c.manual.seconds() / c.fused.median_s, 100.0 * c.visible_share);
  std::printf(
      "error of onepass to float64 in %lld rows %.2e (allowed %.2e); largest difference "
      "between the two %.2e\n",
      static_cast<long long>(answer.rows), answer.error, answer.allowed, c.difference);
  if (answer.right() && !std::isnan(c.difference)) return;
  exit_code = 1;
  std::fprintf(stderr, "onepass: %s\n",
               answer.right() ? "answer: one of the two ways gives NaN; both or none may; report "
                                "this line"
                              : complaint(answer, c.plan.problem_line).c_str());
}

}  // namespace

void add_profile(CLI::App& app, int& exit_code) {
  CLI::App* verb =
      app.add_subcommand("profile", "Attention by hand, step by step, beside the fused call");
  auto options = std::make_shared<ProfileOptions>();
  verb->add_option("line", options->line, "Problem line, as in: fwd f32 h=8 s=2048 mask=causal")
      ->required();
  verb->add_option("--device", options->device, device_help);
  verb->add_option("--runs", options->runs,
                   "Of each, fewer where they take over 10 s (default 10)");
  verb->add_option("--threads", options->threads, "Default OMP_NUM_THREADS, else every core");
  verb->footer(problem_line_help);
  verb->callback([options, &exit_code] { profile(*options, exit_code); });
}

}  // namespace onepass::cli
