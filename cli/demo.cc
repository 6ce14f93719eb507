// onepass demo: attention on real input, its error, its speed beside attention by hand, a picture.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/llama/model.h"
#include "cli/llama/tokenizer.h"
#include "cli/parts/answer.h"
#include "cli/parts/comparison.h"
#include "cli/parts/file.h"
#include "cli/parts/options.h"
#include "cli/parts/outputs.h"
#include "cli/parts/text_input.h"
#include "cli/parts/tile_map.h"
#include "cli/verbs.h"

namespace onepass::cli {
namespace {

constexpr int compared_rows = 64;
constexpr int runs = 30;

struct DemoOptions {
  std::string out = "demo-out", model, text, threads = "0";
};

struct Demo {
  std::string folder;
  int threads = 0;
  int pictures = 0;
  bool right = true;
  Outputs outputs;

  std::string picture_path(int number) const {
    return folder + "/tiles" + std::to_string(number) + ".svg";
  }

  void show(const std::string& input, const TensorView& q, const TensorView& k, const TensorView& v,
            const Attention& options) {
    const Array o = zeros(q.dtype, std::array{q.shape[0], q.shape[1], q.shape[2], v.shape[3]});
    const Comparison c = compare(q, k, v, o.view, options, threads, runs);
    const Answer answer = check_answer(q, k, v, o.view, options, compared_rows);
    right = right && answer.right();
    if (!answer.right()) {
      std::fprintf(stderr, "onepass: %s\n", complaint(answer, c.plan.problem_line).c_str());
    }
    const std::string picture = picture_path(++pictures);
    const Problem problem = value_of(validate(q, k, v, o.view, options));
    outputs.put(picture, to_svg(map_tiles(problem, c.plan.tile, 0, 0), c.plan.problem_line));
    std::printf("%s\n  %s\n", input.c_str(), c.plan.problem_line.c_str());
    std::printf("  error to float64    %.1e in %lld rows (allowed %.1e)\n", answer.error,
                static_cast<long long>(answer.rows), answer.allowed);
    std::printf("  onepass             %9.3f ms  %s, %d threads\n", c.fused.median_s * 1e3,
                c.plan.kernel.c_str(), c.plan.threads);
    std::printf("  by hand             %9.3f ms  matrix products, softmax, whole score matrix\n",
                c.manual.seconds() * 1e3);
    std::printf("  speed-up            %9.2f x\n", c.manual.seconds() / c.fused.median_s);
    std::printf("  picture             %s\n\n", picture.c_str());
  }
};

struct Language {
  llama::Checkpoint checkpoint;
  llama::Tokenizer tokenizer;
};

Language read_language(const std::string& folder) {
  llama::Checkpoint checkpoint =
      value_of("--model", llama::read_checkpoint(folder + "/stories260K.bin"));
  llama::Tokenizer tokenizer = value_of(
      "--model", llama::Tokenizer::read(folder + "/tok512.bin", checkpoint.shape.vocabulary));
  return {std::move(checkpoint), std::move(tokenizer)};
}

// Tokens of the text, run through the model in one call: every layer's q, k and v as one batch.
void show_model(Demo& demo, const Language& language, const std::string& text) {
  const auto& [checkpoint, tokenizer] = language;
  constexpr std::size_t text_bytes = 2000;  // more tokens than its context has
  std::vector<std::int32_t> tokens = tokenizer.encode(std::string_view(text).substr(0, text_bytes));
  tokens.resize(std::min(tokens.size(), static_cast<std::size_t>(checkpoint.shape.context)));
  const auto length = static_cast<std::int64_t>(tokens.size());
  Exec exec;
  exec.threads = demo.threads;
  llama::Model model(checkpoint, length, true, exec);
  model.forward(tokens);
  // The cache holds (layers, positions, heads, head_dim), so layer 0's view grows into all of them.
  const llama::Trace trace = model.trace(0);
  const auto layers = [&](TensorView view) {
    view.shape[0] = checkpoint.shape.layers;
    return view;
  };
  demo.show("A model reading the text: its " + std::to_string(checkpoint.shape.layers) +
                " layers as one batch",
            layers(trace.q), layers(trace.k), layers(trace.v), {.mask = "causal"});
}

void run_demo(const DemoOptions& options, int& exit_code) {
  Demo demo;
  demo.folder = options.out;
  demo.threads = threads_of("--threads", options.threads);
  const std::string text = value_of("--text", read_file(options.text));
  std::optional<Language> language;
  if (!options.model.empty()) language = read_language(options.model);
  make_folder("--out", options.out);
  demo.outputs.reads("--text", options.text);
  const int pictures = options.model.empty() ? 2 : 3;
  for (int i = 1; i <= pictures; ++i) demo.outputs.claim("--out", demo.picture_path(i));
  std::printf("Text: %s\n\n", options.text.c_str());
  if (language) show_model(demo, *language, text);
  const TextInput input = text_input(text, 2048);
  demo.show("The text's bytes through seeded projections", input.q.view, input.k.view, input.v.view,
            {.mask = "causal"});
  demo.show(
      "The same, each paragraph by itself", input.q.view, input.k.view, input.v.view,
      {.mask = "causal & document(paragraph)", .args = {{"paragraph", input.paragraph.view}}});
  demo.outputs.commit();
  if (!demo.right) exit_code = 1;
}

}  // namespace

void add_demo(CLI::App& app, int& exit_code) {
  CLI::App* verb =
      app.add_subcommand("demo", "Attention on real input: its error, its speed, a picture");
  auto options = std::make_shared<DemoOptions>();
  verb->add_option("--text", options->text, "A text file, at least a few lines")->required();
  verb->add_option("--model", options->model, "Folder with stories260K.bin and tok512.bin");
  verb->add_option("--out", options->out, "Folder for the pictures (default demo-out)");
  verb->add_option("--threads", options->threads, "Default OMP_NUM_THREADS, else every core");
  verb->callback([options, &exit_code] { run_demo(*options, exit_code); });
}

}  // namespace onepass::cli
