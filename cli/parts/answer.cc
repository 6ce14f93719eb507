#include "cli/parts/answer.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

#include "cli/parts/convert.h"
#include "cli/parts/error.h"
#include "cli/parts/options.h"
#include "cli/parts/random.h"
#include "cli/parts/reference_call.h"
#include "conformance/comparison.h"

namespace onepass::cli {
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
  const bool packed = o.rank == 3;
  const auto at = [&](int dim) { return static_cast<std::size_t>(packed ? dim - 1 : dim); };
  const std::int64_t heads = o.shape[at(2)], columns = o.shape[at(3)];
  const std::int64_t all = (packed ? 1 : o.shape[0]) * o.shape[at(1)] * heads;
  if (all == 0 || columns == 0) return answer;
  const reference::Tensor q64 = reference_tensor(q), k64 = reference_tensor(k),
                          v64 = reference_tensor(v);
  const reference::Attention exact(q64, k64, v64, reference_options(options));
  double largest = 0.0, plain_error = 0.0;
  Random random(7);
  answer.rows = std::min(rows, all);
  for (std::int64_t i = 0; i < answer.rows; ++i) {
    // The first and the last row, and others anywhere between.
    const std::int64_t pick = i == 0 ? 0 : (i == 1 ? all - 1 : random.below(all));
    std::int64_t row = pick % o.shape[at(1)];
    const std::int64_t h = pick / o.shape[at(1)] % heads;
    std::int64_t b = pick / o.shape[at(1)] / heads;
    const std::int64_t start =
        row * o.strides[at(1)] + h * o.strides[at(2)] + (packed ? 0 : b * o.strides[0]);
    if (packed) {  // the row inside its sequence
      while (row >= exact.sequence(b).q_row + exact.sequence(b).s_q) ++b;
      row -= exact.sequence(b).q_row;
    }
    const reference::Row right = exact.row(b, h, row);
    const reference::Row plain = exact.plain_row(conformance::format_of(q.dtype), b, h, row);
    for (std::int64_t j = 0; j < columns; ++j) {
      const double wanted = right.o[static_cast<std::size_t>(j)];
      const double got = load(o.dtype, o.data, start + j * o.strides[at(3)]);
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
  // An o of few values need not meet the rounding of a 16-bit o where the plain one met it.
  if (size_bytes(o.dtype) == 2 && largest > 0.0) {
    const int half_unit = o.dtype == DType::bfloat16 ? -8 : -11;
    answer.allowed =
        std::max(answer.allowed, 1e-5 + std::ldexp(1.0, std::ilogb(largest) + half_unit));
  }
  return answer;
}

}  // namespace onepass::cli
