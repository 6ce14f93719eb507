// Elements of any dtype as doubles and back.
#pragma once

#include <cstdint>

#include "cli/parts/array.h"

namespace onepass::cli {

double load(DType dtype, const void* data, std::int64_t element);
/// Rounds to nearest, ties to even; float16 and bfloat16 overflow to infinity.
void store(DType dtype, void* data, std::int64_t element, double value);

/// A contiguous copy in another dtype. Same values where the dtype is the same.
Array converted(const TensorView& from, DType dtype);

}  // namespace onepass::cli
