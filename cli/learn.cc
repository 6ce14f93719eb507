// onepass learn: standard attention, FlashAttention v1 and v2 on the same input, with their work
// counted as it is done, beside the papers' formulas.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cli/parts/block_order.h"
#include "cli/parts/error.h"
#include "cli/parts/options.h"
#include "cli/parts/outputs.h"
#include "cli/verbs.h"
#include "reference/attention.h"
#include "reference/teaching.h"

namespace onepass::cli {
namespace {

using reference::Lecture;
using reference::Lesson;
using reference::Work;

struct LearnOptions {
  std::string heads = "2", s_q = "512", s_kv, d = "64", d_v, block, fast_kib = "64", scale, svg;
  bool causal = false;
  std::string seed = "1";
};

constexpr std::int64_t longest = 16384;

Lesson lesson_of(const LearnOptions& options) {
  const auto size = [](const char* flag, const std::string& text, std::int64_t otherwise) {
    return text.empty() ? otherwise : integer_of(flag, text, 1, longest);
  };
  Lesson lesson;
  lesson.heads = size("--heads", options.heads, 0);
  lesson.s_q = size("--s", options.s_q, 0);
  lesson.s_kv = size("--s-kv", options.s_kv, lesson.s_q);
  lesson.d = size("--d", options.d, 0);
  lesson.d_v = size("--d-v", options.d_v, lesson.d);
  // The papers' block size: M / 4d rows, so that blocks of Q, K, V and O fit in M.
  const std::int64_t fast_floats = integer_of("--fast-memory", options.fast_kib, 1, 1 << 20) * 256;
  const std::int64_t rows =
      std::max<std::int64_t>(fast_floats / (4 * std::max(lesson.d, lesson.d_v)), 1);
  lesson.block_q = lesson.block_k = size("--block", options.block, rows);
  constexpr double largest = std::numeric_limits<float>::max();
  lesson.scale = static_cast<float>(options.scale.empty()
                                        ? 1.0 / std::sqrt(static_cast<double>(lesson.d))
                                        : number_of("--scale", options.scale, -largest, largest));
  lesson.causal = options.causal;
  const std::int64_t pairs = lesson.heads * lesson.s_q * lesson.s_kv;
  if (pairs > (std::int64_t{1} << 28)) {
    throw Error(Status::invalid("--s: " + std::to_string(pairs) +
                                " scores in all; at most 2^28 are allowed here, since standard "
                                "attention keeps them; use a shorter sequence or fewer heads"));
  }
  return lesson;
}

struct Data {
  std::vector<float> q, k, v;
};

Data normal_data(const Lesson& l, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  Data data;
  const auto fill = [&](std::vector<float>& part, std::int64_t s, std::int64_t d) {
    part.resize(static_cast<std::size_t>(l.heads * s * d));
    for (float& one : part) one = normal(engine);
  };
  fill(data.q, l.s_q, l.d);
  fill(data.k, l.s_kv, l.d);
  fill(data.v, l.s_kv, l.d_v);
  return data;
}

reference::Result right_answer(const Lesson& l, const Data& data) {
  // One head a sequence: (heads, s, 1, d) has the lesson's memory order.
  const auto tensor = [&](const std::vector<float>& part, std::int64_t s, std::int64_t d) {
    return reference::Tensor{{l.heads, s, 1, d}, std::vector<double>(part.begin(), part.end())};
  };
  reference::Options options;
  options.mask = l.causal ? "causal" : "full";
  options.scale = l.scale;
  return reference::attention(tensor(data.q, l.s_q, l.d), tensor(data.k, l.s_kv, l.d),
                              tensor(data.v, l.s_kv, l.d_v), options);
}

double largest_error(const std::vector<float>& o, const reference::Result& right) {
  double worst = 0.0;
  for (std::size_t i = 0; i < o.size(); ++i) {
    worst = larger_error(worst, error_of(o[i], right.o.data[i]));
  }
  return worst;
}

struct Row {
  const char* what;
  std::int64_t Work::*count;
};
constexpr Row rows[] = {{"bytes read from slow memory", &Work::bytes_read},
                        {"bytes written to slow memory", &Work::bytes_written},
                        {"exponentials", &Work::exponentials},
                        {"rescaling multiplications", &Work::rescalings},
                        {"extra slow memory, bytes", &Work::extra_bytes}};

struct Version {
  const char* name;
  Lecture (*run)(const Lesson&, const float*, const float*, const float*);
  Work (*predict)(const Lesson&);
};
constexpr Version versions[] = {
    {"standard", reference::standard_attention, reference::predict_standard},
    {"flash v1", reference::flash_v1, reference::predict_flash_v1},
    {"flash v2", reference::flash_v2, reference::predict_flash_v2}};

void print_table(const std::vector<Lecture>& lectures, const std::vector<double>& errors,
                 const Lesson& lesson) {
  std::printf("%-30s", "counted");
  for (const Version& version : versions) std::printf("%16s", version.name);
  std::printf("\n");
  for (const Row& row : rows) {
    std::printf("%-30s", row.what);
    for (const Lecture& lecture : lectures) {
      std::printf("%16lld", static_cast<long long>(lecture.work.*row.count));
    }
    std::printf("\n%-30s", "  by the formula");
    for (const Version& version : versions) {
      std::printf("%16lld", static_cast<long long>(version.predict(lesson).*row.count));
    }
    std::printf("\n");
  }
  std::printf("%-30s", "largest error against float64");
  for (double error : errors) std::printf("%16.2e", error);
  std::printf("\n");
}

std::string megabytes_moved(const Work& work) {
  char text[64];
  std::snprintf(text, sizeof text, "%.2f MB moved",
                static_cast<double>(work.bytes_read + work.bytes_written) / 1e6);
  return text;
}

void learn(const LearnOptions& options, int& exit_code) {
  const Lesson lesson = lesson_of(options);
  const auto seed = integer_of("--seed", options.seed, 0, INT32_MAX);
  Outputs outputs;
  if (!options.svg.empty()) outputs.claim("--svg", options.svg);
  const Data data = normal_data(lesson, static_cast<unsigned>(seed));
  const reference::Result right = right_answer(lesson, data);
  std::vector<Lecture> lectures;
  std::vector<double> errors;
  for (const Version& version : versions) {
    lectures.push_back(version.run(lesson, data.q.data(), data.k.data(), data.v.data()));
    errors.push_back(largest_error(lectures.back().o, right));
    const bool counted = lectures.back().work == version.predict(lesson);
    const bool lost = std::isnan(errors.back());
    if (counted && !lost) continue;
    exit_code = 1;
    std::fprintf(stderr, "onepass: %s: %s\n", version.name,
                 lost ? "its output has NaN where float64 has none; scores within float32 are "
                        "allowed; use a smaller --scale"
                      : "its counted work differs from the formula; they are equal; report "
                        "this call");
  }
  std::printf(
      "%lld heads, %lld queries, %lld keys, d %lld, d_v %lld, %s; blocks of %lld rows; "
      "float32\n",
      static_cast<long long>(lesson.heads), static_cast<long long>(lesson.s_q),
      static_cast<long long>(lesson.s_kv), static_cast<long long>(lesson.d),
      static_cast<long long>(lesson.d_v), lesson.causal ? "causal" : "full",
      static_cast<long long>(lesson.block_q));
  print_table(lectures, errors, lesson);
  std::printf(
      "bytes moved: standard O(s d + s^2), flash v1 and v2 O(s^2 d^2 / M); v1 rescales two "
      "vectors a step, v2 one\n");
  if (options.svg.empty()) return;
  const auto blocks = [](std::int64_t s, std::int64_t block) { return (s + block - 1) / block; };
  outputs.put(
      options.svg,
      draw_block_order({{"FlashAttention v1: keys outside, queries inside",
                         megabytes_moved(lectures[1].work), lectures[1].order},
                        {"FlashAttention v2: queries outside, keys inside",
                         megabytes_moved(lectures[2].work), lectures[2].order}},
                       blocks(lesson.s_q, lesson.block_q), blocks(lesson.s_kv, lesson.block_k)));
  outputs.commit();
  std::fprintf(stderr, "onepass: block order drawn to %s\n", options.svg.c_str());
}

}  // namespace

void add_learn(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<LearnOptions>();
  CLI::App* verb = app.add_subcommand(
      "learn", "Standard attention, FlashAttention v1 and v2, with their work counted");
  verb->add_option("--heads", options->heads, "Heads (default 2)");
  verb->add_option("--s", options->s_q, "Queries (default 512)");
  verb->add_option("--s-kv", options->s_kv, "Keys (default: as many as queries)");
  verb->add_option("--d", options->d, "Head dim of q and k (default 64)");
  verb->add_option("--d-v", options->d_v, "Head dim of v and o (default: d)");
  verb->add_option("--block", options->block, "Rows of a block, instead of --fast-memory");
  verb->add_option("--fast-memory", options->fast_kib,
                   "Fast memory M in KiB; blocks have M / 4d rows (default 64)");
  verb->add_option("--scale", options->scale, "Default 1 / sqrt(d)");
  verb->add_flag("--causal", options->causal, "Key j is visible where j <= i + s_kv - s");
  verb->add_option("--seed", options->seed, "Of the normal random input (default 1)");
  verb->add_option("--svg", options->svg, "Draw the order of blocks to this file");
  verb->callback([options, &exit_code] { learn(*options, exit_code); });
}

}  // namespace onepass::cli
