// onepass explain: what a call would do, without doing it.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/parts/case.h"
#include "cli/parts/line_help.h"
#include "cli/parts/memory.h"
#include "cli/parts/options.h"
#include "cli/parts/outputs.h"
#include "cli/parts/tile_map.h"
#include "cli/verbs.h"
#include "core/problem.h"
#include "onepass/plan.h"

namespace onepass::cli {
namespace {

struct ExplainOptions {
  std::vector<std::string> line;
  std::string device, svg, threads = "0", sequence = "0", head = "0";
};

void explain_line(const ExplainOptions& options) {
  const ProblemLine line = line_on(options.device, options.line);
  require_device(line.device);
  const Case made = planned_on(line.device, make_case(line, false));
  const int threads = threads_of("--threads", options.threads);
  const Problem problem = problem_of(made);
  const Plan planned = prepared_of(made, threads);
  const bool empty = problem.b == 0 || problem.h_q == 0 || problem.s_q == 0 || problem.s_kv == 0;
  const std::int64_t sequence =
      empty ? 0 : integer_of("--sequence", options.sequence, 0, problem.b - 1);
  const std::int64_t head = empty ? 0 : integer_of("--head", options.head, 0, problem.h_q - 1);
  require_memory("tensors and workspace of this line",
                 tensor_bytes(line) + static_cast<double>(planned.workspace_bytes));
  Outputs outputs;
  if (!options.svg.empty()) outputs.claim("--svg", options.svg);
  std::fputs(explain(planned).c_str(), stdout);
  const TileMap map = empty ? TileMap{} : map_tiles(problem, planned.tile, sequence, head);
  std::fputs(to_text(map).c_str(), stdout);
  if (options.svg.empty()) return;
  outputs.put(options.svg, to_svg(map, planned.problem_line));
  outputs.commit();
  std::fprintf(stderr, "%s: the tile map of sequence %lld, head %lld\n", options.svg.c_str(),
               static_cast<long long>(sequence), static_cast<long long>(head));
}

}  // namespace

void add_explain(CLI::App& app, int&) {
  CLI::App* verb = app.add_subcommand(
      "explain", "Every kernel with yes or no and why, tiles, workspace, tile map of the mask");
  auto options = std::make_shared<ExplainOptions>();
  verb->add_option("line", options->line, "Problem line, as in: fwd f32 s=2048 mask=causal")
      ->required();
  verb->add_option("--device", options->device, device_help);
  verb->add_option("--svg", options->svg, "Also writes the tile map as a picture");
  verb->add_option("--sequence", options->sequence, "Whose map (default 0)");
  verb->add_option("--head", options->head, "Whose map (default 0)");
  verb->add_option("--threads", options->threads, "Default OMP_NUM_THREADS, else every core");
  verb->footer(problem_line_help);
  verb->callback([options] { explain_line(*options); });
}

}  // namespace onepass::cli
