// onepass run: attention on arrays in NPY files.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/parts/case.h"
#include "cli/parts/convert.h"
#include "cli/parts/npy.h"
#include "cli/parts/options.h"
#include "cli/parts/outputs.h"
#include "cli/verbs.h"
#include "conformance/mirror.h"
#include "onepass/onepass.h"

namespace onepass::cli {
namespace {

struct RunOptions {
  std::string q, k, v, out, lse, sink;
  std::string mask = "full", score, definitions;
  std::vector<std::string> args;
  std::string dropout = "0", seed = "0", scale, align = "bottom_right", q_start, k_start, dtype,
              device = "cpu", threads = "0";
};

bool is_file_name(const std::string& text) { return text.ends_with(".npy"); }

// Holds the arrays that the views of an Attention point into.
class Call {
 public:
  Call(const RunOptions& options, Outputs& outputs) : options_(options), outputs_(outputs) {}

  TensorView read(const std::string& flag, const std::string& path) {
    outputs_.reads(flag, path);
    arrays_.push_back(value_of(flag, read_npy(path)));
    return arrays_.back().view;
  }
  TensorView read_input(const std::string& flag, const std::string& path) {
    const TensorView view = read(flag, path);
    if (options_.dtype.empty()) return view;
    arrays_.push_back(converted(view, float_dtype_of("--dtype", options_.dtype)));
    return arrays_.back().view;
  }
  std::optional<Start> read_start(const std::string& flag, const std::string& text) {
    if (text.empty()) return std::nullopt;
    if (is_file_name(text)) return read(flag, text);
    constexpr std::int64_t far = std::int64_t{1} << 60;
    decltype(Argument::value) value;
    const auto* number =
        literal_of(flag, text, value) ? std::get_if<std::int64_t>(&value) : nullptr;
    if (number != nullptr && *number >= -far && *number <= far) return *number;
    throw Error(Status::invalid(flag + ": \"" + text +
                                "\"; integers from -2^60 to 2^60 and the name of an NPY file, with "
                                ".npy at its end, are allowed; write one of these"));
  }
  Argument read_argument(const std::string& text) {
    const std::size_t equals = text.find('=');
    Argument argument{text.substr(0, equals), false};
    const std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
    if (argument.name.empty() || value.empty()) {
      throw Error(Status::invalid("--arg: \"" + text +
                                  "\"; name=file.npy, name=number, name=true and name=false are "
                                  "allowed; write one of these"));
    }
    const std::string flag = "--arg " + argument.name;
    if (literal_of(flag, value, argument.value)) return argument;
    std::error_code error;
    if (!std::filesystem::exists(value, error)) {
      throw Error(Status::invalid(flag + ": \"" + value +
                                  "\" is neither a number nor a file; a number, true, false or the "
                                  "name of an NPY file is allowed; write one of these"));
    }
    argument.value = read(flag, value);
    return argument;
  }

 private:
  const RunOptions& options_;
  Outputs& outputs_;
  std::vector<Array> arrays_;
};

void run(const RunOptions& options) {
  const Device device = device_of("--device", options.device);
  require_device(device);
  Outputs outputs;
  Call call(options, outputs);
  const TensorView q = call.read_input("--q", options.q);
  const TensorView k = call.read_input("--k", options.k);
  const TensorView v = call.read_input("--v", options.v);
  Attention attention_options;
  attention_options.mask = options.mask;
  attention_options.score = options.score;
  attention_options.definitions = options.definitions;
  for (const std::string& text : options.args) {
    attention_options.args.push_back(call.read_argument(text));
  }
  if (!options.scale.empty()) attention_options.scale = number_of("--scale", options.scale);
  if (!options.sink.empty()) attention_options.sink = call.read("--sink", options.sink);
  attention_options.dropout.p = number_of("--dropout", options.dropout);
  attention_options.dropout.seed = seed_of("--seed", options.seed);
  attention_options.align = align_of("--align", options.align);
  attention_options.q_start = call.read_start("--q-start", options.q_start);
  attention_options.k_start = call.read_start("--k-start", options.k_start);
  Exec exec;
  exec.threads = threads_of("--threads", options.threads);

  outputs.claim("--out", options.out);
  if (!options.lse.empty()) outputs.claim("--lse", options.lse);

  // Shapes that do not fit are attention's to refuse; until then o only needs memory.
  const std::int64_t o_shape[] = {q.rank > 0 ? q.shape[0] : 0, q.rank > 1 ? q.shape[1] : 0,
                                  q.rank > 2 ? q.shape[2] : 0, v.rank > 3 ? v.shape[3] : 0};
  const Array o = zeros(is_float(q.dtype) ? q.dtype : DType::float32, o_shape);
  const std::int64_t lse_shape[] = {o_shape[0], o_shape[2], o_shape[1]};
  const Array lse = zeros(q.dtype == DType::float64 ? DType::float64 : DType::float32, lse_shape);
  if (!options.lse.empty()) attention_options.lse = lse.view;
  conformance::Mirror mirror(device);
  mirror.take(attention_options);
  attention(mirror.of(q), mirror.of(k), mirror.of(v), mirror.of(o.view), attention_options, exec);
  mirror.fetch();
  outputs.put(options.out, npy_bytes(o.view));
  if (!options.lse.empty()) outputs.put(options.lse, npy_bytes(lse.view));
  outputs.commit();
  std::fprintf(stderr, "%s: %s\n", options.out.c_str(), o.view.describe().c_str());
  if (options.lse.empty()) return;
  std::fprintf(stderr, "%s: %s\n", options.lse.c_str(), lse.view.describe().c_str());
}

}  // namespace

void add_run(CLI::App& app, int&) {
  CLI::App* verb = app.add_subcommand("run", "Attention on arrays in NPY files");
  auto options = std::make_shared<RunOptions>();
  verb->add_option("--q", options->q, "Queries (b, s_q, h_q, d), NPY")->required();
  verb->add_option("--k", options->k, "Keys (b, s_kv, h_kv, d)")->required();
  verb->add_option("--v", options->v, "Values (b, s_kv, h_kv, d_v)")->required();
  verb->add_option("-o,--out", options->out, "Output (b, s_q, h_q, d_v), written")->required();
  verb->add_option("--lse", options->lse, "Log-sum-exp (b, h_q, s_q), written");
  verb->add_option("--mask", options->mask, "Which keys are visible, as in causal (default: full)");
  verb->add_option("--score", options->score, "The new logit, as in \"softcap(s, 50)\"");
  verb->add_option("--arg", options->args,
                   "name=file.npy, =number, =true or =false, for mask and score")
      ->allow_extra_args(false);
  verb->add_option("--definitions", options->definitions,
                   "Your own: \"name(a) = expression; ...\"");
  verb->add_option("--sink", options->sink, "One logit per query head (h_q), NPY");
  verb->add_option("--scale", options->scale, "Default 1 / sqrt(d)");
  verb->add_option("--align", options->align, "bottom_right (default) or top_left");
  verb->add_option("--q-start", options->q_start, "First query's position: integer or NPY (b)");
  verb->add_option("--k-start", options->k_start, "First key's position: integer or NPY (b)");
  verb->add_option("--dtype", options->dtype, "Converts q, k and v first, as to bf16");
  verb->add_option("--dropout", options->dropout, "Share of the weights to drop (default 0)");
  verb->add_option("--seed", options->seed, "Of the dropout (default 0)");
  verb->add_option("--device", options->device, "cpu (default), cuda or cuda:1");
  verb->add_option("--threads", options->threads, "Default OMP_NUM_THREADS, else every core");
  verb->callback([options] { run(*options); });
}

}  // namespace onepass::cli
