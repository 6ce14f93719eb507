// A float32 matrix product, blocked for registers and caches: what manual attention is timed with.
#pragma once

#include <cstdint>

namespace onepass::cli {

/// Floats that pack_panels writes for a (depth, columns) matrix.
std::int64_t packed_floats(std::int64_t depth, std::int64_t columns);

/// Packs b (depth, columns), element (i, j) at b[i * row_stride + j * column_stride], into panels.
void pack_panels(const float* b, std::int64_t row_stride, std::int64_t column_stride,
                 std::int64_t depth, std::int64_t columns, float* packed);

/// c (rows, columns) = a (rows, depth) b, b packed. Row strides in elements.
void multiply(const float* a, std::int64_t a_stride, const float* packed, float* c,
              std::int64_t c_stride, std::int64_t rows, std::int64_t depth, std::int64_t columns);

}  // namespace onepass::cli
