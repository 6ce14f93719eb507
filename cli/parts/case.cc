#include "cli/parts/case.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "cli/parts/argument_value.h"
#include "cli/parts/convert.h"
#include "cli/parts/options.h"
#include "cli/parts/random.h"
#include "core/backward.h"

namespace onepass::cli {
namespace {

// An array whose values the line does not say gets the default of every sequence.
Start start_of(const LineStart& start, std::int64_t b, std::int64_t otherwise,
               std::vector<Array>& arrays) {
  if (!start.per_sequence) return start.numbers.front();
  std::vector<std::int64_t> numbers = start.numbers;
  if (numbers.empty()) numbers.assign(static_cast<std::size_t>(b), otherwise);
  const std::int64_t shape[] = {static_cast<std::int64_t>(numbers.size())};
  arrays.push_back(zeros(start.dtype, shape));
  if (start.dtype == DType::int64) {
    std::copy(numbers.begin(), numbers.end(), arrays.back().data<std::int64_t>());
  } else {
    std::copy(numbers.begin(), numbers.end(), arrays.back().data<std::int32_t>());
  }
  return arrays.back().view;
}

}  // namespace

void fill_normal(const TensorView& contiguous, std::uint64_t seed) {
  Random random(seed);
  const std::int64_t elements = contiguous.elements();
  for (std::int64_t i = 0; i < elements; i += 2) {  // Box and Muller 1958: two values at a time
    const double radius = std::sqrt(-2.0 * std::log(1.0 - random.uniform()));
    const double angle = 2.0 * std::numbers::pi * random.uniform();
    store(contiguous.dtype, contiguous.data, i, radius * std::cos(angle));
    if (i + 1 < elements) {
      store(contiguous.dtype, contiguous.data, i + 1, radius * std::sin(angle));
    }
  }
}

double tensor_bytes(const ProblemLine& line) {
  const auto real = [](std::int64_t size) { return static_cast<double>(size); };
  const double rows = real(line.b) * real(line.s_q) * real(line.h_q);
  const double keys = real(line.b) * real(line.s_kv) * real(line.h_kv);
  const double inputs = rows * real(line.d) + keys * (real(line.d) + real(line.d_v));
  // A backward has a gradient for each input, and one for o.
  const double copies = line.pass == Pass::forward ? 1.0 : 2.0;
  return copies * (real(size_bytes(line.dtype)) * inputs +
                   real(size_bytes(line.out.value_or(line.dtype))) * rows * real(line.d_v));
}

double checked_tensor_bytes(const ProblemLine& line) {
  return tensor_bytes(line) * (1.0 + 8.0 / static_cast<double>(size_bytes(line.dtype)));
}

Case make_case(const ProblemLine& line, bool with_tensors, std::uint64_t seed) {
  Case made;
  std::uint64_t stream = seed << 8;
  const auto tensor = [&](DType dtype, std::initializer_list<std::int64_t> shape, bool filled) {
    ++stream;
    if (!with_tensors) return TensorView(nullptr, dtype, shape);
    made.arrays.push_back(zeros(dtype, {shape.begin(), shape.size()}));
    if (filled) fill_normal(made.arrays.back().view, stream);
    return made.arrays.back().view;
  };
  const DType statistics = line.dtype == DType::float64 ? DType::float64 : DType::float32;
  made.q = tensor(line.dtype, {line.b, line.s_q, line.h_q, line.d}, true);
  made.k = tensor(line.dtype, {line.b, line.s_kv, line.h_kv, line.d}, true);
  made.v = tensor(line.dtype, {line.b, line.s_kv, line.h_kv, line.d_v}, true);
  made.o = tensor(line.out.value_or(line.dtype), {line.b, line.s_q, line.h_q, line.d_v}, false);
  made.options.mask = line.mask;
  made.options.score = line.score;
  made.options.definitions = line.definitions;
  made.options.scale = line.scale;
  made.options.align = line.align;
  made.options.dropout = line.dropout;
  if (line.sink) made.options.sink = tensor(statistics, {line.h_q}, true);
  if (line.lse) made.options.lse = tensor(statistics, {line.b, line.h_q, line.s_q}, false);
  if (line.q_start) {
    const std::int64_t otherwise = line.align == Align::top_left ? 0 : line.s_kv - line.s_q;
    made.options.q_start = start_of(*line.q_start, line.b, otherwise, made.arrays);
  }
  if (line.k_start) made.options.k_start = start_of(*line.k_start, line.b, 0, made.arrays);
  for (const LineArgument& argument : line.args) {
    made.options.args.push_back(
        {argument.name, argument_value(argument, line, ++stream, made.arrays)});
  }
  if (line.pass == Pass::forward) return made;
  made.pass = Pass::backward;
  made.backward.o = made.o;
  made.backward.lse = tensor(statistics, {line.b, line.h_q, line.s_q}, false);
  made.backward.dout =
      tensor(line.out.value_or(line.dtype), {line.b, line.s_q, line.h_q, line.d_v}, true);
  if (line.dlse) made.backward.dlse = tensor(statistics, {line.b, line.h_q, line.s_q}, true);
  made.backward.dq = tensor(line.dtype, {line.b, line.s_q, line.h_q, line.d}, false);
  made.backward.dk = tensor(line.dtype, {line.b, line.s_kv, line.h_kv, line.d}, false);
  made.backward.dv = tensor(line.dtype, {line.b, line.s_kv, line.h_kv, line.d_v}, false);
  if (line.sink) made.backward.dsink = tensor(statistics, {line.h_q}, false);
  return made;
}

Problem problem_of(const Case& made) {
  return value_of(made.pass == Pass::forward
                      ? validate(made.q, made.k, made.v, made.o, made.options)
                      : validate_backward(made.q, made.k, made.v, made.backward, made.options));
}

Plan plan_of(const Case& made, int threads) {
  return made.pass == Pass::forward
             ? plan(made.q, made.k, made.v, made.o, made.options, threads)
             : plan_backward(made.q, made.k, made.v, made.backward, made.options, threads);
}

void run_call(const Case& made, const Exec& exec) {
  if (made.pass == Pass::forward) {
    attention(made.q, made.k, made.v, made.o, made.options, exec);
  } else {
    attention_backward(made.q, made.k, made.v, made.backward, made.options, exec);
  }
}

void run_before(const Case& made, int threads) {
  if (made.pass == Pass::forward) return;
  Attention options = made.options;
  options.lse = made.backward.lse;
  attention(made.q, made.k, made.v, made.o, options, {.threads = threads});
}

std::string join_line(const std::vector<std::string>& words) {
  if (words.size() == 1) return words.front();
  std::string line;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    const bool quotes_lost = equals != std::string::npos &&
                             word.find(' ', equals) != std::string::npos &&
                             word.find('"') == std::string::npos;
    if (!line.empty()) line += ' ';
    line += quotes_lost ? word.substr(0, equals + 1) + '"' + word.substr(equals + 1) + '"' : word;
  }
  return line;
}

}  // namespace onepass::cli
