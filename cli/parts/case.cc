#include "cli/parts/case.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "cli/parts/argument_value.h"
#include "cli/parts/convert.h"
#include "cli/parts/options.h"
#include "cli/parts/random.h"
#include "core/backward.h"
#include "core/kv_cache.h"

namespace onepass::cli {
namespace {

TensorView integers(DType dtype, const std::vector<std::int64_t>& numbers,
                    std::vector<Array>& arrays) {
  const std::int64_t shape[] = {static_cast<std::int64_t>(numbers.size())};
  arrays.push_back(zeros(dtype, shape));
  if (dtype == DType::int64) {
    std::copy(numbers.begin(), numbers.end(), arrays.back().data<std::int64_t>());
  } else {
    std::copy(numbers.begin(), numbers.end(), arrays.back().data<std::int32_t>());
  }
  return arrays.back().view;
}

// An array whose values the line does not say gets the default of every sequence.
std::vector<std::int64_t> numbers_of(const LineStart& start, std::int64_t b,
                                     std::int64_t otherwise) {
  if (!start.numbers.empty()) return start.numbers;
  return std::vector<std::int64_t>(static_cast<std::size_t>(b), otherwise);
}

Start start_of(const LineStart& start, std::int64_t b, std::int64_t otherwise,
               std::vector<Array>& arrays) {
  if (!start.per_sequence) return start.numbers.front();
  return integers(start.dtype, numbers_of(start, b, otherwise), arrays);
}

// Running sums of the lengths; lengths that the line does not say share the tokens out.
TensorView offsets_of(const LineStart& lengths, std::int64_t b, std::int64_t tokens,
                      std::vector<Array>& arrays) {
  std::vector<std::int64_t> offsets{0};
  for (std::int64_t i = 1; lengths.numbers.empty() && i <= b; ++i) {
    offsets.push_back(tokens / b * i + tokens % b * i / b);
  }
  for (const std::int64_t length : lengths.numbers) offsets.push_back(offsets.back() + length);
  return integers(lengths.dtype, offsets, arrays);
}

// The line's keys as a cache whose pages follow one another, so that they are one tensor too.
KvCache cache_of(const ProblemLine& line, const Case& made, std::vector<Array>& arrays) {
  if (line.pass == Pass::backward || line.q_lens || line.k_lens) {
    throw Error(Status::invalid(
        "page: beside bwd, q_lens or k_lens; a cache has a forward over dense queries; drop one"));
  }
  const std::int64_t page = *line.page == 0 ? line.s_kv : *line.page;
  if (page == 0 || line.s_kv % page != 0) {
    throw Error(Status::invalid("page: " + std::to_string(page) + " for a capacity of " +
                                std::to_string(line.s_kv) +
                                " keys; whole pages are allowed; change s"));
  }
  const std::int64_t blocks = line.s_kv / page;
  KvCache cache;
  cache.k = TensorView(made.k.data, line.dtype, {line.b * blocks, page, line.h_kv, line.d});
  cache.v = TensorView(made.v.data, line.dtype, {line.b * blocks, page, line.h_kv, line.d_v});
  std::vector<std::int64_t> before =
      numbers_of(line.k_used.value_or(LineStart{true, {}, DType::int32}), line.b, line.s_kv);
  for (std::int64_t& keys : before) keys -= line.s_new;
  cache.seqlens = integers(DType::int64, before, arrays);
  if (*line.page > 0) {
    std::vector<std::int64_t> table(static_cast<std::size_t>(line.b * blocks));
    std::iota(table.begin(), table.end(), std::int64_t{0});
    cache.block_table =
        TensorView(integers(DType::int32, table, arrays).data, DType::int32, {line.b, blocks});
  }
  return cache;
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
  const auto queries = [&](DType dtype, std::int64_t width, bool filled) {
    return line.q_lens ? tensor(dtype, {line.s_q, line.h_q, width}, filled)
                       : tensor(dtype, {line.b, line.s_q, line.h_q, width}, filled);
  };
  const auto keys = [&](std::int64_t width, bool filled) {
    return line.k_lens ? tensor(line.dtype, {line.s_kv, line.h_kv, width}, filled)
                       : tensor(line.dtype, {line.b, line.s_kv, line.h_kv, width}, filled);
  };
  const auto lse = [&](bool filled) {
    return line.q_lens ? tensor(statistics, {line.h_q, line.s_q}, filled)
                       : tensor(statistics, {line.b, line.h_q, line.s_q}, filled);
  };
  const DType out = line.out.value_or(line.dtype);
  made.q = queries(line.dtype, line.d, true);
  made.k = keys(line.d, true), made.v = keys(line.d_v, true);
  made.o = queries(out, line.d_v, false);
  std::vector<Array>& arrays = made.arrays;
  if (line.q_lens) {
    made.options.cu_seqlens_q = offsets_of(*line.q_lens, line.b, line.s_q, arrays);
  }
  if (line.k_lens) {
    made.options.cu_seqlens_k = offsets_of(*line.k_lens, line.b, line.s_kv, arrays);
  }
  if (line.k_used || line.page) {
    const LineStart used = line.k_used.value_or(LineStart{true, {}, DType::int32});
    const std::int64_t all =
        line.k_lens ? line.s_kv / std::max<std::int64_t>(line.b, 1) : line.s_kv;
    made.options.seqused_k = integers(used.dtype, numbers_of(used, line.b, all), arrays);
  }
  if (line.page) {
    made.cache = cache_of(line, made, arrays);
    if (line.s_new > 0) {
      made.cache->k_new = tensor(line.dtype, {line.b, line.s_new, line.h_kv, line.d}, true);
      made.cache->v_new = tensor(line.dtype, {line.b, line.s_new, line.h_kv, line.d_v}, true);
    }
  }
  made.options.mask = line.mask;
  made.options.score = line.score;
  made.options.definitions = line.definitions;
  made.options.scale = line.scale;
  made.options.align = line.align;
  made.options.dropout = line.dropout;
  if (line.sink) made.options.sink = tensor(statistics, {line.h_q}, true);
  if (line.lse) made.options.lse = lse(false);
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
  made.backward.lse = lse(false);
  made.backward.dout = queries(out, line.d_v, true);
  if (line.dlse) made.backward.dlse = lse(true);
  made.backward.dq = queries(line.dtype, line.d, false);
  made.backward.dk = keys(line.d, false), made.backward.dv = keys(line.d_v, false);
  if (line.sink) made.backward.dsink = tensor(statistics, {line.h_q}, false);
  return made;
}

namespace {

// A cache says itself how many keys are in use.
Attention cache_options(const Case& made) {
  Attention options = made.options;
  options.seqused_k = {};
  return options;
}

}  // namespace

Problem problem_of(const Case& made) {
  if (made.cache) return value_of(validate(made.q, *made.cache, made.o, cache_options(made)));
  return value_of(made.pass == Pass::forward
                      ? validate(made.q, made.k, made.v, made.o, made.options)
                      : validate_backward(made.q, made.k, made.v, made.backward, made.options));
}

void each_tensor(Case& made, const std::function<void(TensorView&)>& visit) {
  Backward& backward = made.backward;
  std::vector<TensorView*> tensors = {&made.q,
                                      &made.k,
                                      &made.v,
                                      &made.o,
                                      &backward.o,
                                      &backward.lse,
                                      &backward.dq,
                                      &backward.dk,
                                      &backward.dv,
                                      &backward.dout,
                                      &backward.dlse,
                                      &backward.dsink,
                                      &made.options.sink,
                                      &made.options.lse};
  for (Argument& argument : made.options.args) {
    if (auto* array = std::get_if<TensorView>(&argument.value)) tensors.push_back(array);
  }
  for (ArgumentGradient& one : backward.dargs) tensors.push_back(&one.gradient);
  if (made.cache) {
    KvCache& cache = *made.cache;
    tensors.insert(tensors.end(), {&cache.k, &cache.v, &cache.k_new, &cache.v_new});
  }
  for (TensorView* tensor : tensors) {
    if (tensor->given()) visit(*tensor);
  }
}

Case planned_on(Device device, Case made) {
  each_tensor(made, [&](TensorView& tensor) { tensor.device = device; });
  return made;
}

Case placed_on(conformance::Mirror& mirror, Case made) {
  each_tensor(made, [&](TensorView& tensor) { tensor = mirror.of(tensor); });
  return made;
}

void require_device(Device device) {
  if (device.kind == Device::Kind::cpu) return;
  const Status status = cuda_capabilities(device.index).status();
  if (!status.ok()) throw Error({Code::not_supported, status.message});
}

ProblemLine line_on(const std::string& device, const std::vector<std::string>& words) {
  ProblemLine line = value_of(parse_problem_line(join_line(words)));
  if (!device.empty()) line.device = device_of("--device", device);
  return line;
}

Plan plan_of(const Case& made, int threads) {
  if (made.cache) return plan(made.q, *made.cache, made.o, cache_options(made), threads);
  return made.pass == Pass::forward
             ? plan(made.q, made.k, made.v, made.o, made.options, threads)
             : plan_backward(made.q, made.k, made.v, made.backward, made.options, threads);
}

Plan prepared_of(const Case& made, int threads) {
  if (made.cache) return prepare(made.q, *made.cache, made.o, cache_options(made), threads);
  return made.pass == Pass::forward
             ? prepare(made.q, made.k, made.v, made.o, made.options, threads)
             : prepare_backward(made.q, made.k, made.v, made.backward, made.options, threads);
}

void run_call(const Case& made, const Exec& exec) {
  if (made.cache) {
    attention_kvcache(made.q, *made.cache, made.o, cache_options(made), exec);
  } else if (made.pass == Pass::forward) {
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
