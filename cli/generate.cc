// onepass generate: a Llama-style model whose attention is ours, writing text.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/llama/model.h"
#include "cli/llama/sampler.h"
#include "cli/llama/tokenizer.h"
#include "cli/parts/npy.h"
#include "cli/parts/options.h"
#include "cli/parts/outputs.h"
#include "cli/parts/print.h"
#include "cli/verbs.h"

namespace onepass::cli {
namespace {

struct GenerateOptions {
  std::string model, tokenizer, prompt, dump_folder;
  std::string device = "cpu", steps = "256", temperature = "0", top_p = "1", seed = "0",
              threads = "0";
  std::string prefill = "all";
};

bool prefill_in_one_call(const std::string& text) {
  if (text == "all" || text == "one") return text == "all";
  throw Error(Status::invalid("--prefill: \"" + text +
                              "\"; all (one call) and one (a call for each token) are allowed; "
                              "write one of these"));
}

std::string dump_path(const std::string& folder, std::int64_t layer, char name) {
  return folder + "/layer" + std::to_string(layer) + "_" + name + ".npy";
}

void claim_dump(Outputs& outputs, std::int64_t layers, const std::string& folder) {
  make_folder("--dump-qkv", folder);
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    for (const char name : {'q', 'k', 'v', 'o'}) {
      outputs.claim("--dump-qkv", dump_path(folder, layer, name));
    }
  }
}

void dump(Outputs& outputs, const llama::Model& model, std::int64_t layers,
          const std::string& folder) {
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const llama::Trace trace = model.trace(layer);
    outputs.put(dump_path(folder, layer, 'q'), npy_bytes(trace.q));
    outputs.put(dump_path(folder, layer, 'k'), npy_bytes(trace.k));
    outputs.put(dump_path(folder, layer, 'v'), npy_bytes(trace.v));
    outputs.put(dump_path(folder, layer, 'o'), npy_bytes(trace.o));
  }
  outputs.commit();
  std::fprintf(stderr, "%s: q, k, v and o of %lld layers, %lld positions\n", folder.c_str(),
               static_cast<long long>(layers), static_cast<long long>(model.position()));
}

// Its keys lie in pages of a cache.
void require_cpu(const GenerateOptions& options) {
  const Device device = device_of("--device", options.device);
  if (device.kind == Device::Kind::cpu) return;
  throw Error({Code::not_supported, "--device: " + options.device +
                                        "; no GPU kernel takes a cache of keys yet, so that cpu is "
                                        "allowed; leave it out"});
}

void generate(const GenerateOptions& options) {
  require_cpu(options);
  const bool in_one_call = prefill_in_one_call(options.prefill);
  const llama::Checkpoint checkpoint = value_of("--model", llama::read_checkpoint(options.model));
  const auto tokenizer = value_of(
      "--tokenizer", llama::Tokenizer::read(options.tokenizer, checkpoint.shape.vocabulary));
  const std::int64_t steps = integer_of("--steps", options.steps, 1, checkpoint.shape.context);
  llama::Sampler sampler(number_of("--temperature", options.temperature, 0.0, 100.0),
                         number_of("--top-p", options.top_p, 0.0, 1.0),
                         seed_of("--seed", options.seed));
  Exec exec;
  exec.threads = threads_of("--threads", options.threads);

  std::vector<std::int32_t> tokens;
  if (options.prompt.size() <= tokenizer.longest_text(steps)) {
    tokens = tokenizer.encode(options.prompt);
  }
  if (tokens.empty() || static_cast<std::int64_t>(tokens.size()) > steps) {
    throw Error(Status::invalid("--prompt: " + std::to_string(options.prompt.size()) +
                                " bytes; at most " + std::to_string(steps) +
                                " tokens (--steps) are allowed; shorten it or raise --steps"));
  }
  Outputs outputs;
  outputs.reads("--model", options.model);
  outputs.reads("--tokenizer", options.tokenizer);
  const bool dumps = !options.dump_folder.empty();
  if (dumps) claim_dump(outputs, checkpoint.shape.layers, options.dump_folder);
  llama::Model model(checkpoint, steps, dumps, exec);
  for (std::size_t i = 1; i < tokens.size(); ++i) print(tokenizer.decode(tokens[i - 1], tokens[i]));
  const auto start = std::chrono::steady_clock::now();
  // Every step runs one position: the prompt's, then one for each token that was chosen.
  while (model.position() < steps) {
    const auto done = static_cast<std::size_t>(model.position());
    const std::span<const std::int32_t> left = std::span(tokens).subspan(done);
    const std::span<const float> logits = model.forward(in_one_call ? left : left.subspan(0, 1));
    if (model.position() < static_cast<std::int64_t>(tokens.size())) continue;
    const std::int32_t next = sampler.next(logits);
    if (next < 0) {
      throw Error({Code::runtime_error,
                   "--model: every logit is NaN; finite weights are needed; check the file"});
    }
    if (next == llama::Tokenizer::begin_of_text) break;
    print(tokenizer.decode(tokens.back(), next));
    tokens.push_back(next);
  }
  print("\n");
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::fprintf(stderr, "%lld positions, %.0f a second\n", static_cast<long long>(model.position()),
               static_cast<double>(model.position()) / seconds.count());
  if (dumps) dump(outputs, model, checkpoint.shape.layers, options.dump_folder);
}

}  // namespace

void add_generate(CLI::App& app, int&) {
  CLI::App* verb =
      app.add_subcommand("generate", "Text from a Llama-style model (llama2.c checkpoint)");
  auto options = std::make_shared<GenerateOptions>();
  verb->add_option("--model", options->model, "Checkpoint, as in stories260K.bin")->required();
  verb->add_option("--tokenizer", options->tokenizer, "As in tok512.bin")->required();
  verb->add_option("--device", options->device, "cpu (default)");
  verb->add_option("--steps", options->steps, "Positions in all (default 256)");
  verb->add_option("--temperature", options->temperature, "0 (default) = the most likely token");
  verb->add_option("--top-p", options->top_p, "Keeps the likeliest tokens up to this share");
  verb->add_option("--seed", options->seed, "Of the random choice (default 0)");
  verb->add_option("--prompt", options->prompt, "Text to begin with");
  verb->add_option("--prefill", options->prefill,
                   "The prompt in one attention call (all, default) or token by token (one)");
  verb->add_option("--dump-qkv", options->dump_folder,
                   "Folder for layerN_{q,k,v,o}.npy, each (1, s, h, d)");
  verb->add_option("--threads", options->threads, "Default OMP_NUM_THREADS, else every core");
  verb->callback([options] { generate(*options); });
}

}  // namespace onepass::cli
