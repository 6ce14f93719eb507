// The printing half of problem_line.h.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "core/problem_line.h"

namespace onepass {
namespace {

constexpr std::array<std::pair<std::string_view, DType>, 4> short_names{{
    {"f64", DType::float64},
    {"f32", DType::float32},
    {"bf16", DType::bfloat16},
    {"f16", DType::float16},
}};

std::string sizes(std::int64_t first, std::int64_t second) {
  return std::to_string(first) + (first == second ? "" : "/" + std::to_string(second));
}

std::string number_text(double number) {
  std::array<char, 32> digits{};
  const auto result = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  return {digits.data(), result.ptr};
}

// A real argument stays real when the line is read again.
std::string real_text(double number) {
  std::string text = number_text(number);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::string in_one_line(std::string text, char for_newline) {
  std::replace(text.begin(), text.end(), '\n', for_newline);
  return text;
}

std::string value_text(const std::string& text) {
  int depth = 0;
  for (const char c : text) depth += (c == '(' || c == '[') - (c == ')' || c == ']');
  const bool plain =
      !text.empty() && depth <= 0 && text.find_first_of(" \t\r\n\"'") == std::string::npos;
  if (plain) return text;
  const char quote = text.find('"') == std::string::npos ? '"' : '\'';
  return quote + text + quote;
}

std::string start_text(const LineStart& start) {
  if (!start.per_sequence) return std::to_string(start.numbers.front());
  if (start.numbers.empty()) return std::string(name(start.dtype)) + "[b]";
  std::string text = "[";
  for (std::size_t i = 0; i < start.numbers.size(); ++i) {
    text += (i == 0 ? "" : ",") + std::to_string(start.numbers[i]);
  }
  return text + "]";
}

std::string array_text(const TensorView& view) {
  std::string text = view.describe();
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  return text;
}

std::string argument_text(const Argument& argument) {
  if (const auto* truth = std::get_if<bool>(&argument.value)) return *truth ? "true" : "false";
  if (const auto* integer = std::get_if<std::int64_t>(&argument.value)) {
    return std::to_string(*integer);
  }
  if (const auto* real = std::get_if<double>(&argument.value)) return real_text(*real);
  return array_text(std::get<TensorView>(argument.value));
}

std::string device_text(Device device) {
  return device.index == 0 ? "cuda" : "cuda:" + std::to_string(device.index);
}

// Arrays are not read: a line is made before a call's memory exists.
std::optional<LineStart> line_start(const StartOf& start, std::int64_t otherwise) {
  if (start.array.given()) return LineStart{true, {}, start.array.dtype};
  if (start.number == otherwise) return std::nullopt;
  return LineStart{false, {start.number}};
}

}  // namespace

std::string short_name(DType dtype) {
  for (const auto& [text, value] : short_names) {
    if (value == dtype) return std::string(text);
  }
  return name(dtype);
}

std::optional<DType> float_dtype(std::string_view text) {
  for (const auto& [short_text, dtype] : short_names) {
    if (text == short_text || text == name(dtype)) return dtype;
  }
  return std::nullopt;
}

std::string to_text(const ProblemLine& line) {
  const std::string pass = line.pass == Pass::forward ? "fwd " : "bwd ";
  std::string text = pass + short_name(line.dtype) + " b=" + std::to_string(line.b) +
                     " h=" + sizes(line.h_q, line.h_kv) + " s=" + sizes(line.s_q, line.s_kv) +
                     " d=" + sizes(line.d, line.d_v);
  const auto add = [&text](std::string_view name, const std::string& value) {
    text += " " + std::string(name) + "=" + value_text(value);
  };
  if (line.out && *line.out != line.dtype) add("out", short_name(*line.out));
  if (line.mask != "full") add("mask", in_one_line(line.mask, ' '));
  if (!line.score.empty()) add("score", in_one_line(line.score, ' '));
  if (!line.definitions.empty()) add("definitions", in_one_line(line.definitions, ';'));
  if (line.scale) add("scale", number_text(*line.scale));
  if (line.align == Align::top_left) add("align", "top_left");
  if (line.q_start) add("q_start", start_text(*line.q_start));
  if (line.k_start) add("k_start", start_text(*line.k_start));
  if (line.q_lens) add("q_lens", start_text(*line.q_lens));
  if (line.k_lens) add("k_lens", start_text(*line.k_lens));
  if (line.k_used) add("k_used", start_text(*line.k_used));
  if (line.page) add("page", std::to_string(*line.page));
  if (line.s_new != 0) add("new", std::to_string(line.s_new));
  if (line.sink) add("sink", "random");
  if (line.lse) add("lse", "yes");
  if (line.dlse) add("dlse", "yes");
  if (line.device.kind == Device::Kind::cuda) add("device", device_text(line.device));
  const Dropout& dropout = line.dropout;
  if (dropout.p != 0.0) add("dropout", number_text(dropout.p));
  if (dropout.seed != 0) add("seed", std::to_string(dropout.seed));
  if (dropout.offset != 0) add("offset", std::to_string(dropout.offset));
  if (dropout.row0 != 0) add("row0", std::to_string(dropout.row0));
  if (dropout.col0 != 0) add("col0", std::to_string(dropout.col0));
  for (const LineArgument& argument : line.args) {
    add(is_line_field(argument.name) ? "arg." + argument.name : argument.name, argument.value);
  }
  return text;
}

ProblemLine line_of(const Problem& problem) {
  ProblemLine line;
  line.pass = problem.pass, line.device = problem.device;
  line.dtype = problem.dtype, line.b = problem.b, line.h_q = problem.h_q;
  line.h_kv = problem.h_kv, line.s_q = problem.s_q, line.s_kv = problem.s_kv;
  line.d = problem.d, line.d_v = problem.d_v;
  if (problem.out_dtype != problem.dtype) line.out = problem.out_dtype;
  if (problem.has_mask) line.mask = problem.mask.text;
  if (problem.has_score) line.score = problem.score.text;
  if (problem.d > 0 && problem.scale != 1.0 / std::sqrt(static_cast<double>(problem.d))) {
    line.scale = problem.scale;
  }
  if (problem.has_mask || problem.has_score) line.definitions = problem.definitions;
  if (!problem.ends_meet) {
    line.q_start = line_start(problem.q_start, problem.s_kv - problem.s_q);
  }
  line.k_start = line_start(problem.k_start, 0);
  if (line.q_start && !line.q_start->per_sequence && line.q_start->numbers.front() == 0) {
    line.align = Align::top_left;
    line.q_start.reset();
  }
  const auto lengths = [](const TensorView& array) -> std::optional<LineStart> {
    if (!array.given()) return std::nullopt;
    return LineStart{true, {}, array.dtype};
  };
  line.q_lens = lengths(problem.cu_seqlens_q), line.k_lens = lengths(problem.cu_seqlens_k);
  line.k_used = lengths(problem.seqused_k);
  if (problem.cache.given) line.page = problem.cache.page_size;
  line.s_new = problem.cache.s_new;
  line.sink = problem.sink.given();
  line.lse = problem.pass == Pass::forward && problem.lse.given();
  line.dlse = problem.dlse.given();
  if (problem.dropout.p != 0.0) line.dropout = problem.dropout;
  for (const Argument& argument : problem.args) {
    const bool said = (problem.has_mask && problem.mask.names(argument.name)) ||
                      (problem.has_score && problem.score.names(argument.name));
    if (said) line.args.push_back({argument.name, argument_text(argument)});
  }
  return line;
}

std::string Problem::line() const { return to_text(line_of(*this)); }

}  // namespace onepass
