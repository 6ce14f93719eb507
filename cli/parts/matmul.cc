// Goto and van de Geijn 2008, reduced: B in panels of a few vectors' width, blocks of `depth` that
// keep a panel in L2, and a register block of rows x vectors. Compiled for the vector width found
// at run time.
#include "cli/parts/matmul.h"

#include <algorithm>
#include <cstring>

namespace onepass::cli {
namespace {

constexpr std::int64_t depth_block = 512;

struct Block {
  const float* a;
  std::int64_t a_stride;
  const float* panel;  // (depth, panel columns)
  float* c;
  std::int64_t c_stride;
  std::int64_t depth;
  std::int64_t columns;  // of c that this panel covers
  bool accumulate;
};

// `rows` rows of c from one panel, in registers.
template <class Vector, int rows, int vectors>
[[gnu::always_inline]] inline void block_rows(const Block& block) {
  constexpr std::int64_t lanes = sizeof(Vector) / sizeof(float);
  constexpr std::int64_t width = lanes * vectors;
  // Unrolled whole, or the sums would live in memory.
  Vector sums[rows][vectors] = {};
  for (std::int64_t i = 0; i < block.depth; ++i) {
    Vector b[vectors];
#pragma GCC unroll 8
    for (int vector = 0; vector < vectors; ++vector) {
      std::memcpy(&b[vector], block.panel + i * width + vector * lanes, sizeof(Vector));
    }
#pragma GCC unroll 8
    for (int row = 0; row < rows; ++row) {
      const Vector a = block.a[row * block.a_stride + i] - Vector{};
#pragma GCC unroll 8
      for (int vector = 0; vector < vectors; ++vector) sums[row][vector] += a * b[vector];
    }
  }
  const bool whole = block.columns == width;
#pragma GCC unroll 8
  for (int row = 0; row < rows; ++row) {
    float edge[width];
    float* c = block.c + row * block.c_stride;
#pragma GCC unroll 8
    for (int vector = 0; vector < vectors; ++vector) {
      if (whole && block.accumulate) {
        Vector before;
        std::memcpy(&before, c + vector * lanes, sizeof(Vector));
        sums[row][vector] += before;
      }
      std::memcpy((whole ? c : edge) + vector * lanes, &sums[row][vector], sizeof(Vector));
    }
    for (std::int64_t j = 0; !whole && j < block.columns; ++j) {
      c[j] = block.accumulate ? c[j] + edge[j] : edge[j];
    }
  }
}

template <class Vector, int rows, int vectors>
[[gnu::always_inline]] inline void all_rows(Block block, std::int64_t count) {
  for (; count >= rows; count -= rows) {
    block_rows<Vector, rows, vectors>(block);
    block.a += rows * block.a_stride;
    block.c += rows * block.c_stride;
  }
  for (; count > 0; --count) {
    block_rows<Vector, 1, vectors>(block);
    block.a += block.a_stride;
    block.c += block.c_stride;
  }
}

template <int bytes>
using Floats [[gnu::vector_size(bytes)]] = float;

struct Target {
  std::int64_t columns;
  void (*run)(const Block&, std::int64_t rows);
};

void run_narrow(const Block& block, std::int64_t rows) { all_rows<Floats<16>, 4, 2>(block, rows); }

#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] void run_avx2(const Block& block, std::int64_t rows) {
  all_rows<Floats<32>, 6, 2>(block, rows);
}
[[gnu::target("avx512f,fma")]] void run_avx512(const Block& block, std::int64_t rows) {
  all_rows<Floats<64>, 6, 4>(block, rows);
}
Target choose() {
  if (__builtin_cpu_supports("avx512f")) return {64, run_avx512};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {16, run_avx2};
  return {8, run_narrow};
}
#else
Target choose() { return {8, run_narrow}; }
#endif

const Target& target() {
  static const Target chosen = choose();
  return chosen;
}

std::int64_t panels(std::int64_t columns) {
  return (columns + target().columns - 1) / target().columns;
}

}  // namespace

std::int64_t packed_floats(std::int64_t depth, std::int64_t columns) {
  return panels(columns) * target().columns * depth;
}

void pack_panels(const float* b, std::int64_t row_stride, std::int64_t column_stride,
                 std::int64_t depth, std::int64_t columns, float* packed) {
  const std::int64_t width = target().columns;
  for (std::int64_t panel = 0; panel < panels(columns); ++panel) {
    const std::int64_t first = panel * width;
    const std::int64_t used = std::min(width, columns - first);
    for (std::int64_t i = 0; i < depth; ++i, packed += width) {
      const float* from = b + i * row_stride + first * column_stride;
      for (std::int64_t j = 0; j < used; ++j) packed[j] = from[j * column_stride];
      std::fill(packed + used, packed + width, 0.0f);
    }
  }
}

void multiply(const float* a, std::int64_t a_stride, const float* packed, float* c,
              std::int64_t c_stride, std::int64_t rows, std::int64_t depth, std::int64_t columns) {
  const std::int64_t width = target().columns;
  for (std::int64_t first = 0; first == 0 || first < depth; first += depth_block) {
    for (std::int64_t panel = 0; panel < panels(columns); ++panel) {
      target().run({.a = a + first,
                    .a_stride = a_stride,
                    .panel = packed + (panel * depth + first) * width,
                    .c = c + panel * width,
                    .c_stride = c_stride,
                    .depth = std::min(depth_block, depth - first),
                    .columns = std::min(width, columns - panel * width),
                    .accumulate = first > 0},
                   rows);
    }
  }
}

}  // namespace onepass::cli
