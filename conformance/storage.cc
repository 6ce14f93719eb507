#include "conformance/storage.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "reference/rounding.h"

namespace onepass::conformance {
namespace {

constexpr std::byte untouched_byte{0xff};

std::array<std::int64_t, 4> strides_of(std::array<std::int64_t, 4> shape, Layout layout) {
  const auto [b, s, h, d] = shape;
  switch (layout) {
    case Layout::seq_major:
      return {s * h * d, h * d, d, 1};
    case Layout::head_major:
      return {h * s * d, d, s * d, 1};
    case Layout::every_second_row:
      return {2 * s * h * d, 2 * h * d, d, 1};
    case Layout::part_of_wider:
      return {s * (2 * h + 1) * d, (2 * h + 1) * d, d, 1};
    case Layout::strided_dim:
      return {2 * s * h * d, 2 * h * d, 2 * d, 2};
    case Layout::reversed:
      return {s * h * d, -h * d, d, 1};
    case Layout::one_head:
      return {s * d, d, 0, 1};
    case Layout::one_value:
      return {0, 0, 0, 0};
  }
  return {};
}

// bfloat16 is the upper half of a float32; the value is representable, so nothing is rounded here.
std::uint16_t bfloat16_bits(double value) {
  const float single = static_cast<float>(value);
  std::uint32_t bits = 0;
  std::memcpy(&bits, &single, sizeof bits);
  return static_cast<std::uint16_t>(bits >> 16);
}

double from_bfloat16(std::uint16_t half) {
  const std::uint32_t bits = std::uint32_t{half} << 16;
  float single = 0.0f;
  std::memcpy(&single, &bits, sizeof single);
  return single;
}

std::uint16_t float16_bits(double value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::fabs(value);
  if (std::isnan(value)) return 0x7e00;
  if (std::isinf(value)) return sign | 0x7c00;
  if (size < std::ldexp(1.0, -14)) return sign | static_cast<std::uint16_t>(std::ldexp(size, 24));
  int exponent = 0;
  const double fraction = std::frexp(size, &exponent);  // [0.5, 1)
  const auto mantissa = static_cast<std::uint16_t>(std::ldexp(fraction, 11) - 1024.0);
  return static_cast<std::uint16_t>(sign | (exponent + 14) << 10 | mantissa);
}

double from_float16(std::uint16_t half) {
  const int exponent = half >> 10 & 31, mantissa = half & 1023;
  double size =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  if (exponent == 31) size = mantissa == 0 ? INFINITY : NAN;
  return half & 0x8000 ? -size : size;
}

template <class T>
T get(const std::byte* place) {
  T value;
  std::memcpy(&value, place, sizeof value);
  return value;
}

template <class T>
void put(std::byte* place, T value) {
  std::memcpy(place, &value, sizeof value);
}

}  // namespace

const char* name(Layout layout) {
  static constexpr const char* names[] = {"seq_major",     "head_major",  "every_second_row",
                                          "part_of_wider", "strided_dim", "reversed",
                                          "one_head",      "one_value"};
  return names[static_cast<std::size_t>(layout)];
}

double rounded(DType dtype, double value) {
  using reference::Format;
  switch (dtype) {
    case DType::float32:
      return reference::round_to(Format::float32, value);
    case DType::bfloat16:
      return reference::round_to(Format::bfloat16, value);
    case DType::float16:
      return reference::round_to(Format::float16, value);
    default:
      return value;
  }
}

Storage::Storage(DType dtype, std::span<const std::int64_t> shape, Layout layout) {
  // Tensors of fewer dims get leading dims of size 1 and are contiguous.
  std::array<std::int64_t, 4> full_shape{1, 1, 1, 1};
  std::copy(shape.begin(), shape.end(), full_shape.end() - static_cast<long>(shape.size()));
  const auto strides = strides_of(full_shape, layout);
  std::int64_t lowest = 0, highest = 0;
  for (std::size_t dim = 0; dim < 4; ++dim) {
    const std::int64_t reach = std::max<std::int64_t>(full_shape[dim] - 1, 0) * strides[dim];
    (reach < 0 ? lowest : highest) += reach;
  }
  const std::int64_t size = size_bytes(dtype);
  // Guards of whole elements keep the first element aligned to its size only, as callers may.
  const std::int64_t before = guard_bytes + size - lowest * size;
  block_.assign(static_cast<std::size_t>(before + (highest + 1) * size + guard_bytes),
                untouched_byte);
  view_ = TensorView(block_.data() + before, dtype, shape, std::span(strides).last(shape.size()));
}

void Storage::each_element(auto visit) const {
  std::array<std::int64_t, 4> shape{1, 1, 1, 1}, strides{};
  const auto rank = static_cast<std::size_t>(view_.rank);
  std::copy_n(view_.shape.begin(), rank, shape.end() - view_.rank);
  std::copy_n(view_.strides.begin(), rank, strides.end() - view_.rank);
  const std::int64_t size = size_bytes(view_.dtype);
  const std::ptrdiff_t first = static_cast<const std::byte*>(view_.data) - block_.data();
  std::size_t index = 0;
  for (std::int64_t a = 0; a < shape[0]; ++a) {
    for (std::int64_t b = 0; b < shape[1]; ++b) {
      for (std::int64_t c = 0; c < shape[2]; ++c) {
        const std::int64_t row = a * strides[0] + b * strides[1] + c * strides[2];
        for (std::int64_t d = 0; d < shape[3]; ++d) {
          visit(index++, static_cast<std::size_t>(first + (row + d * strides[3]) * size));
        }
      }
    }
  }
}

void Storage::write(std::span<const double> values) {
  each_element([&](std::size_t i, std::size_t offset) {
    std::byte* place = block_.data() + offset;
    const double value = rounded(view_.dtype, values[i]);
    switch (view_.dtype) {
      case DType::float64:
        put(place, value);
        break;
      case DType::float32:
        put(place, static_cast<float>(value));
        break;
      case DType::bfloat16:
        put(place, bfloat16_bits(value));
        break;
      case DType::float16:
        put(place, float16_bits(value));
        break;
      case DType::int64:
        put(place, static_cast<std::int64_t>(value));
        break;
      case DType::int32:
        put(place, static_cast<std::int32_t>(value));
        break;
      case DType::uint8:
      case DType::boolean:
        put(place, static_cast<std::uint8_t>(value));
        break;
    }
  });
}

std::vector<double> Storage::read() const {
  std::vector<double> values(static_cast<std::size_t>(view_.elements()));
  each_element([&](std::size_t i, std::size_t offset) {
    const std::byte* place = block_.data() + offset;
    switch (view_.dtype) {
      case DType::float64:
        values[i] = get<double>(place);
        break;
      case DType::float32:
        values[i] = get<float>(place);
        break;
      case DType::bfloat16:
        values[i] = from_bfloat16(get<std::uint16_t>(place));
        break;
      case DType::float16:
        values[i] = from_float16(get<std::uint16_t>(place));
        break;
      case DType::int64:
        values[i] = static_cast<double>(get<std::int64_t>(place));
        break;
      case DType::int32:
        values[i] = get<std::int32_t>(place);
        break;
      case DType::uint8:
      case DType::boolean:
        values[i] = get<std::uint8_t>(place);
        break;
    }
  });
  return values;
}

bool Storage::guards_hold() const {
  std::vector<bool> owned(block_.size(), false);
  each_element([&](std::size_t, std::size_t offset) {
    std::fill_n(owned.begin() + static_cast<std::ptrdiff_t>(offset), size_bytes(view_.dtype), true);
  });
  for (std::size_t i = 0; i < block_.size(); ++i) {
    if (!owned[i] && block_[i] != untouched_byte) return false;
  }
  return true;
}

bool Storage::untouched() const {
  return std::all_of(block_.begin(), block_.end(),
                     [](std::byte byte) { return byte == untouched_byte; });
}

}  // namespace onepass::conformance
