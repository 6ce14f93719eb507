#include "cli/parts/convert.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>

namespace onepass::cli {
namespace {

float float_of_half(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000) << 16;
  const std::uint32_t magnitude = half & 0x7fff;
  if (magnitude >= 0x7c00) {  // infinity and NaN
    return std::bit_cast<float>(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  }
  const float value = magnitude >= 0x400
                          ? std::bit_cast<float>((magnitude << 13) + (std::uint32_t{112} << 23))
                          : std::ldexp(static_cast<float>(magnitude), -24);
  return sign != 0 ? -value : value;
}

// Rounds a double to a format of `mantissa` explicit bits whose smallest exponent and largest
// finite value are given; works on the value, so that one rounding is all there is.
double rounded(double value, int mantissa, int smallest_exponent, double largest) {
  if (value == 0.0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), smallest_exponent);
  const double step = std::ldexp(1.0, exponent - mantissa);
  const double result = std::nearbyint(value / step) * step;
  return std::abs(result) > largest ? std::copysign(INFINITY, value) : result;
}

std::uint16_t half_of(double value) {
  constexpr double largest = 65504.0;
  if (std::isnan(value)) return 0x7e00;
  const double exact = rounded(value, 10, -14, largest);
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::abs(exact);
  if (std::isinf(magnitude)) return sign | 0x7c00;
  if (magnitude < std::ldexp(1.0, -14)) {
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::ldexp(magnitude, 24)));
  }
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(magnitude));
  return static_cast<std::uint16_t>(sign | ((bits - (std::uint32_t{112} << 23)) >> 13));
}

std::uint16_t bfloat_of(double value) {
  if (std::isnan(value)) return 0x7fc0;
  constexpr double largest = 0x1.fep127;
  const auto exact = static_cast<float>(rounded(value, 7, -126, largest));
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(exact) >> 16);
}

}  // namespace

double load(DType dtype, const void* data, std::int64_t element) {
  switch (dtype) {
    case DType::float64:
      return static_cast<const double*>(data)[element];
    case DType::float32:
      return static_cast<const float*>(data)[element];
    case DType::bfloat16:
      return std::bit_cast<float>(
          static_cast<std::uint32_t>(static_cast<const std::uint16_t*>(data)[element]) << 16);
    case DType::float16:
      return float_of_half(static_cast<const std::uint16_t*>(data)[element]);
    case DType::int64:
      return static_cast<double>(static_cast<const std::int64_t*>(data)[element]);
    case DType::int32:
      return static_cast<const std::int32_t*>(data)[element];
    case DType::uint8:
    case DType::boolean:
      return static_cast<const std::uint8_t*>(data)[element];
  }
  return 0.0;
}

void store(DType dtype, void* data, std::int64_t element, double value) {
  switch (dtype) {
    case DType::float64:
      static_cast<double*>(data)[element] = value;
      return;
    case DType::float32:
      static_cast<float*>(data)[element] = static_cast<float>(value);
      return;
    case DType::bfloat16:
      static_cast<std::uint16_t*>(data)[element] = bfloat_of(value);
      return;
    case DType::float16:
      static_cast<std::uint16_t*>(data)[element] = half_of(value);
      return;
    case DType::int64:
      static_cast<std::int64_t*>(data)[element] = static_cast<std::int64_t>(value);
      return;
    case DType::int32:
      static_cast<std::int32_t*>(data)[element] = static_cast<std::int32_t>(value);
      return;
    case DType::uint8:
    case DType::boolean:
      static_cast<std::uint8_t*>(data)[element] = static_cast<std::uint8_t>(value);
      return;
  }
}

Array converted(const TensorView& from, DType dtype) {
  const auto rank = static_cast<std::size_t>(from.rank);
  Array to = zeros(dtype, std::span(from.shape).first(rank));
  std::array<std::int64_t, max_rank> at{};
  for (std::int64_t i = 0; i < to.view.elements(); ++i) {
    std::int64_t offset = 0;
    for (std::size_t dim = 0; dim < rank; ++dim) offset += at[dim] * from.strides[dim];
    if (from.dtype == dtype) {  // bit by bit: not every int64 is a double
      const std::int64_t size = size_bytes(dtype);
      std::memcpy(static_cast<std::byte*>(to.view.data) + i * size,
                  static_cast<const std::byte*>(from.data) + offset * size,
                  static_cast<std::size_t>(size));
    } else {
      store(dtype, to.view.data, i, load(from.dtype, from.data, offset));
    }
    for (std::size_t dim = rank; dim-- > 0;) {
      if (++at[dim] < from.shape[dim]) break;
      at[dim] = 0;
    }
  }
  return to;
}

}  // namespace onepass::cli
