// Elements of array arguments as a mask sees them: integers, or float32.
#pragma once

#include <bit>
#include <cstdint>

#include "lang/range.h"
#include "onepass/tensor.h"

namespace onepass::lang::intervals {

/// Type of an element read by an expression.
inline Type element_type(DType dtype) {
  if (is_float(dtype)) return Type::real;
  return dtype == DType::boolean ? Type::boolean : Type::integer;
}

struct BFloat16 {
  std::uint16_t bits;
  operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
};

struct Float16 {
  std::uint16_t bits;
  operator float() const;
};

struct Boolean {
  std::uint8_t byte;
  operator std::int64_t() const { return byte != 0; }
};

/// Calls f with a pointer to the elements in their own type; each converts to int64 or to float.
template <class F>
auto with_elements(const void* data, DType dtype, F f) {
  switch (dtype) {
    case DType::float64:
      return f(static_cast<const double*>(data));
    case DType::float32:
      return f(static_cast<const float*>(data));
    case DType::bfloat16:
      return f(static_cast<const BFloat16*>(data));
    case DType::float16:
      return f(static_cast<const Float16*>(data));
    case DType::int64:
      return f(static_cast<const std::int64_t*>(data));
    case DType::int32:
      return f(static_cast<const std::int32_t*>(data));
    case DType::uint8:
      return f(static_cast<const std::uint8_t*>(data));
    case DType::boolean:
      break;
  }
  return f(static_cast<const Boolean*>(data));
}

/// The element at this index, which may be out of range (0) and is ignored in dims of size 1.
Value element(const TensorView& array, const std::int64_t* index);

/// Every value of an element of this type.
Range any_element(DType dtype);

/// The least range of the elements whose indices lie in the box (which may leave the array), read
/// one by one while they are at most `limit_bytes`; else any_element. Arrays that are not in host
/// memory are not read.
Range scan_box(const TensorView& array, const IntegerRange* index, std::int64_t limit_bytes);

}  // namespace onepass::lang::intervals
