// onepass bench: how fast this machine runs a problem or a suite of them, and how near its peak.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/parts/answer.h"
#include "cli/parts/bench_row.h"
#include "cli/parts/case.h"
#include "cli/parts/gradient_answer.h"
#include "cli/parts/line_help.h"
#include "cli/parts/memory.h"
#include "cli/parts/options.h"
#include "cli/parts/print.h"
#include "cli/parts/suites.h"
#include "cli/parts/visible.h"
#include "cli/verbs.h"
#include "cpu/peak.h"

namespace onepass::cli {
namespace {

struct BenchOptions {
  std::vector<std::string> line;
  std::string device, suite = "small", format = "md", runs = "30", seconds = "10", threads = "0";
};

// The instruction set that a kernel's name ends with.
Isa isa_of(const std::string& kernel) {
  for (const Isa isa : {Isa::avx512_bf16, Isa::avx512, Isa::avx2, Isa::neon}) {
    if (kernel.ends_with(std::string(".") + name(isa))) return isa;
  }
  return Isa::baseline;
}

// Bytes of all keys and values: what decoding reads.
std::int64_t cache_bytes(const Problem& p) {
  return p.b * p.h_kv * p.s_kv * (p.d + p.d_v) * size_bytes(p.dtype);
}

// The call's own on a GPU, in the order of its stream.
Array give_workspace(Device device, const Plan& plan, Exec& exec) {
  if (device.kind == Device::Kind::cuda) return {};
  const std::int64_t bytes[] = {plan.workspace_bytes};
  Array workspace = zeros(DType::uint8, bytes);
  exec.workspace = workspace.view.data;
  exec.workspace_bytes = plan.workspace_bytes;
  return workspace;
}

class Bench {
 public:
  explicit Bench(const BenchOptions& options)
      : runs_(static_cast<int>(integer_of("--runs", options.runs, 1, 1000000))),
        budget_s_(number_of("--seconds", options.seconds, 0.0, 1e6)),
        threads_(threads_of("--threads", options.threads)),
        device_(options.device) {}

  BenchRow run(const std::string& text) {
    const ProblemLine line = line_on(device_, {text});
    require_device(line.device);
    require_memory("q, k, v and o of this line with float64 copies for the check",
                   checked_tensor_bytes(line));
    const Case made = make_case(line, true);
    conformance::Mirror mirror(line.device);
    const Case placed = placed_on(mirror, made);
    const Problem problem = problem_of(made);
    const Plan planned = prepared_of(placed, threads_);
    const Work work = count_work(problem, planned.tile);
    Exec exec;
    exec.threads = threads_;
    const Array workspace = give_workspace(line.device, planned, exec);
    BenchRow row;
    row.line = to_text(line);
    row.kernel = planned.kernel;
    row.threads = planned.threads;
    row.visible_share = work.share(problem);
    run_before(placed, threads_);
    row.timing = measure_on(line.device, mirror, runs_, budget_s_, [&] { run_call(placed, exec); });
    mirror.fetch();
    row.gflops = work.flops(problem) / row.timing.median_s * 1e-9;
    if (line.device.kind == Device::Kind::cpu) {
      row.peak_gflops = peak(isa_of(planned.kernel), line.dtype) * planned.threads * 1e-9;
    }
    if (planned.kernel.starts_with("cpu.decode")) {
      const double bytes = row.visible_share * static_cast<double>(cache_bytes(problem));
      row.read_gb_s = bytes / row.timing.median_s * 1e-9;
      row.peak_read_gb_s = cpu::read_bandwidth(cache_bytes(problem), planned.threads) * 1e-9;
    }
    const Answer answer = made.pass == Pass::forward
                              ? check_answer(made.q, made.k, made.v, made.o, made.options)
                              : check_gradients(made);
    row.error = answer.error;
    row.right = answer.right();
    if (!row.right) std::fprintf(stderr, "onepass: %s\n", complaint(answer, row.line).c_str());
    return row;
  }

 private:
  double peak(Isa isa, DType dtype) {
    const auto [entry, is_new] = peaks_.try_emplace({isa, dtype}, 0.0);
    if (is_new) entry->second = cpu::peak_flops(isa, dtype);
    return entry->second;
  }

  int runs_;
  double budget_s_;
  int threads_;
  std::string device_;
  std::map<std::pair<Isa, DType>, double> peaks_;
};

void bench(const BenchOptions& options, int& exit_code) {
  const RowFormat format = row_format_of("--format", options.format);
  const std::vector<std::string> lines = options.line.empty()
                                             ? suite_of("--suite", options.suite)
                                             : std::vector{join_line(options.line)};
  Bench measured(options);
  std::size_t done = 0;
  for (const std::string& line : lines) {
    std::fprintf(stderr, "[%zu/%zu] %s\n", ++done, lines.size(), line.c_str());
    const BenchRow row = measured.run(line);
    if (done == 1) std::fputs(head_of(format).c_str(), stdout);
    print(to_text(row, format));
    if (!row.right) exit_code = 1;
  }
  std::fputs(
      "Median of the runs after one that warms up, same buffers every run (warm cache), "
      "normal random input, workspace given;\non a GPU by its own clock; work counts visible pairs "
      "only; the answer is "
      "checked once against float64 in 16 rows.\n",
      stderr);
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand(
      "bench", "GFLOP/s and share of this machine's peak, for a suite or a problem line");
  auto options = std::make_shared<BenchOptions>();
  verb->add_option("line", options->line, "Problem line; default: every line of the suite");
  verb->add_option("--device", options->device, device_help);
  verb->add_option("--suite", options->suite, "small (default) or cpu");
  verb->add_option("--format", options->format, "md (default), csv or jsonl");
  verb->add_option("--runs", options->runs, "Of each line (default 30)");
  verb->add_option("--seconds", options->seconds,
                   "Fewer runs (at least 3) where they take longer than this (default 10)");
  verb->add_option("--threads", options->threads, "Default OMP_NUM_THREADS, else every core");
  verb->footer(problem_line_help);
  verb->callback([options, &exit_code] { bench(*options, exit_code); });
}

}  // namespace onepass::cli
