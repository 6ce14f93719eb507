#include "cli/parts/answer.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

#include "cli/parts/convert.h"
#include "cli/parts/error.h"
#include "cli/parts/options.h"
#include "cli/parts/random.h"
#include "reference/attention.h"

namespace onepass::cli {
namespace {

reference::Tensor tensor_of(const TensorView& view) {
  const Array doubles = converted(view, DType::float64);
  const auto* data = doubles.data<const double>();
  return {view.shape, std::vector<double>(data, data + view.elements())};
}

std::vector<std::int64_t> integers_of(const TensorView& view) {
  std::vector<std::int64_t> integers;
  if (!view.given()) return integers;
  const Array contiguous = converted(view, view.dtype);
  for (std::int64_t i = 0; i < view.elements(); ++i) {
    integers.push_back(view.dtype == DType::int64
                           ? contiguous.data<const std::int64_t>()[i]
                           : static_cast<std::int64_t>(load(view.dtype, contiguous.view.data, i)));
  }
  return integers;
}

reference::Array array_of(const TensorView& view) {
  reference::Array array;
  array.shape.assign(view.shape.begin(), view.shape.begin() + view.rank);
  if (is_float(view.dtype)) {
    const Array doubles = converted(view, DType::float64);
    const auto* data = doubles.data<const double>();
    array.reals.assign(data, data + view.elements());
    array.type = reference::Type::real;
  } else {
    array.integers = integers_of(view);
    array.type = view.dtype == DType::boolean ? reference::Type::boolean : reference::Type::integer;
  }
  return array;
}

std::vector<std::int64_t> starts_of(const std::optional<Start>& start) {
  if (!start) return {};
  if (const auto* number = std::get_if<std::int64_t>(&*start)) return {*number};
  return integers_of(std::get<TensorView>(*start));
}

reference::Options options_of(const Attention& options) {
  reference::Options result;
  result.mask = options.mask;
  result.score = options.score;
  result.definitions = options.definitions;
  result.scale = options.scale;
  const Dropout& dropout = options.dropout;
  result.dropout = {dropout.p, dropout.seed, dropout.offset, dropout.row0, dropout.col0};
  result.top_left = options.align == Align::top_left;
  result.q_start = starts_of(options.q_start);
  result.k_start = starts_of(options.k_start);
  if (options.sink.given()) result.sink = array_of(options.sink).reals;
  for (const Argument& argument : options.args) {
    reference::Argument& copy = result.arguments.emplace_back();
    copy.name = argument.name;
    std::visit(
        [&copy](const auto& value) {
          if constexpr (std::is_same_v<std::decay_t<decltype(value)>, TensorView>) {
            copy.value = array_of(value);
          } else {
            copy.value = value;
          }
        },
        argument.value);
  }
  return result;
}

reference::Format format_of(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return reference::Format::float64;
    case DType::bfloat16:
      return reference::Format::bfloat16;
    case DType::float16:
      return reference::Format::float16;
    default:
      return reference::Format::float32;
  }
}

}  // namespace

std::string complaint(const Answer& answer, const std::string& line) {
  char numbers[96];
  std::snprintf(numbers, sizeof numbers, "error %.3g to float64; up to %.3g is allowed",
                answer.error, answer.allowed);
  return std::string("answer: ") + numbers +
         "; use numbers that its dtype can hold, or report this line: " + line;
}

Answer check_answer(const TensorView& q, const TensorView& k, const TensorView& v,
                    const TensorView& o, const Attention& options, std::int64_t rows) {
  Answer answer;
  const std::int64_t all = o.shape[0] * o.shape[1] * o.shape[2];
  if (all == 0 || o.shape[3] == 0) return answer;
  const reference::Tensor q64 = tensor_of(q), k64 = tensor_of(k), v64 = tensor_of(v);
  const reference::Attention exact(q64, k64, v64, options_of(options));
  double largest = 0.0, plain_error = 0.0;
  Random random(7);
  answer.rows = std::min(rows, all);
  for (std::int64_t i = 0; i < answer.rows; ++i) {
    // The first and the last row, and others anywhere between.
    const std::int64_t pick = i == 0 ? 0 : (i == 1 ? all - 1 : random.below(all));
    const std::int64_t row = pick % o.shape[1];
    const std::int64_t h = pick / o.shape[1] % o.shape[2];
    const std::int64_t b = pick / o.shape[1] / o.shape[2];
    const reference::Row right = exact.row(b, h, row);
    const reference::Row plain = exact.plain_row(format_of(q.dtype), b, h, row);
    const std::int64_t start = b * o.strides[0] + row * o.strides[1] + h * o.strides[2];
    for (std::int64_t j = 0; j < o.shape[3]; ++j) {
      const double wanted = right.o[static_cast<std::size_t>(j)];
      const double got = load(o.dtype, o.data, start + j * o.strides[3]);
      answer.error = larger_error(answer.error, error_of(got, wanted));
      // Values without bound must not allow an error without bound.
      if (!std::isfinite(wanted)) continue;
      largest = std::max(largest, std::abs(wanted));
      const double plain_difference = std::abs(plain.o[static_cast<std::size_t>(j)] - wanted);
      if (std::isfinite(plain_difference)) plain_error = std::max(plain_error, plain_difference);
    }
  }
  const bool narrow = q.dtype == DType::bfloat16 || q.dtype == DType::float16;
  answer.relative = largest > 0.0 ? answer.error / largest : answer.error;
  answer.allowed = narrow ? 2.0 * plain_error + 1e-5 : std::max(1e-5 * largest, 2.0 * plain_error);
  return answer;
}

}  // namespace onepass::cli
