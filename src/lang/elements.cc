#include "lang/elements.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace onepass::lang::intervals {
namespace {

template <class T>
inline constexpr bool is_real = std::is_same_v<T, double> || std::is_same_v<T, float> ||
                                std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>;

/// `count` > 0 booleans side by side: whether one differs from the first is a byte search.
void scan_bytes(const std::uint8_t* line, std::size_t count, Range& found) {
  const bool first = line[0] != 0;
  const bool same =
      first ? std::memchr(line, 0, count) == nullptr : std::memcmp(line, line + 1, count - 1) == 0;
  const std::int64_t value = first ? 1 : 0;
  found = hull(Type::boolean, found, same ? integers(value, value) : integers(0, 1));
}

/// Grows `found` by `count` elements of one line of the array.
template <class T>
void scan_line(const T* line, std::int64_t count, std::int64_t stride, Range& found) {
  if constexpr (is_real<T>) {
    for (std::int64_t i = 0; i < count; ++i) {
      const auto value = static_cast<float>(line[i * stride]);
      found = hull(Type::real, found, only(Type::real, {.real = value}));
    }
  } else if (std::is_same_v<T, Boolean> && stride == 1) {
    scan_bytes(reinterpret_cast<const std::uint8_t*>(line), static_cast<std::size_t>(count), found);
  } else if (count > 0) {
    using Narrow = std::conditional_t<std::is_same_v<T, Boolean>, std::uint8_t, T>;
    const auto narrow = [](T value) { return static_cast<Narrow>(std::int64_t{value}); };
    Narrow lo = narrow(line[0]);
    Narrow hi = lo;
    // Two loops, so that the common one has a stride known to the compiler.
    if (stride == 1) {
      for (std::int64_t i = 0; i < count; ++i) {
        const Narrow value = narrow(line[i]);
        lo = std::min(lo, value);
        hi = std::max(hi, value);
      }
    } else {
      for (std::int64_t i = 0; i < count; ++i) {
        const Narrow value = narrow(line[i * stride]);
        lo = std::min(lo, value);
        hi = std::max(hi, value);
      }
    }
    found = hull(Type::integer, found, integers(lo, hi));
  }
}

}  // namespace

Float16::operator float() const {
  const std::uint32_t sign = std::uint32_t{bits & 0x8000u} << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu;
  const std::uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0) {  // zero and subnormals: mantissa * 2^-24
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t rebiased = exponent == 0x1f ? 0xffu : exponent + 112u;
  return std::bit_cast<float>(sign | (rebiased << 23) | (mantissa << 13));
}

Value element(const TensorView& array, const std::int64_t* index) {
  const bool real = is_float(array.dtype);
  std::int64_t offset = 0;
  for (int dim = 0; dim < array.rank; ++dim) {
    if (array.shape[dim] == 1) continue;
    if (index[dim] < 0 || index[dim] >= array.shape[dim]) {
      return real ? Value{.real = 0.0f} : Value{.integer = 0};
    }
    offset += index[dim] * array.strides[dim];
  }
  return with_elements(array.data, array.dtype, [&](const auto* data) {
    if (real) return Value{.real = static_cast<float>(data[offset])};
    return Value{.integer = static_cast<std::int64_t>(data[offset])};
  });
}

Range any_element(DType dtype) {
  switch (dtype) {
    case DType::int32:
      return integers(std::numeric_limits<std::int32_t>::min(),
                      std::numeric_limits<std::int32_t>::max());
    case DType::uint8:
      return integers(0, 255);
    default:
      return everything(element_type(dtype));
  }
}

Range scan_box(const TensorView& array, const IntegerRange* index, std::int64_t limit_bytes) {
  const Type type = element_type(array.dtype);
  Range found = nothing(type);
  std::int64_t extent[max_rank] = {1, 1, 1, 1};
  std::int64_t stride[max_rank] = {0, 0, 0, 0};
  // The dims of the box lie in the last places; the innermost line is the last dim.
  const int skip = max_rank - std::max(array.rank, 0);
  bool outside = false;
  std::int64_t offset = 0;
  std::int64_t limit = limit_bytes / size_bytes(array.dtype);
  for (int dim = 0; dim < array.rank; ++dim) {
    if (array.shape[dim] == 1) continue;
    const std::int64_t lo = std::max<std::int64_t>(index[dim].lo, 0);
    const std::int64_t hi = std::min(index[dim].hi, array.shape[dim] - 1);
    outside |= lo != index[dim].lo || hi != index[dim].hi;
    if (lo > hi) return only(type, type == Type::real ? Value{.real = 0} : Value{.integer = 0});
    extent[dim + skip] = hi - lo + 1;
    stride[dim + skip] = array.strides[dim];
    offset += lo * array.strides[dim];
    limit /= extent[dim + skip];
  }
  if (limit == 0 || array.device.kind != Device::Kind::cpu) return any_element(array.dtype);
  if (outside) found = only(type, type == Type::real ? Value{.real = 0} : Value{.integer = 0});

  with_elements(array.data, array.dtype, [&](const auto* data) {
    for (std::int64_t i = 0; i < extent[0]; ++i) {
      for (std::int64_t j = 0; j < extent[1]; ++j) {
        for (std::int64_t m = 0; m < extent[2]; ++m) {
          const auto* line = data + offset + i * stride[0] + j * stride[1] + m * stride[2];
          scan_line(line, extent[3], stride[3], found);
          if (type == Type::boolean && found.integer.lo < found.integer.hi) return;
        }
      }
    }
  });
  return found;
}

}  // namespace onepass::lang::intervals
