// Tile sizes of the CPU forward, chosen by measurement.
#pragma once

#include <cstdint>

#include "onepass/plan.h"
#include "onepass/tensor.h"

namespace onepass::cpu {

/// Queries and keys per tile. `keys` decides the order of summation, so it depends on nothing but
/// instruction set, dtype and head dims; `rows` may be cut for small problems.
struct ForwardTile {
  int rows;
  int keys;
};

inline constexpr ForwardTile avx512_tile{192, 512};
inline constexpr ForwardTile avx512_wide_tile{96, 256};  // d or d_v above 256
inline constexpr ForwardTile bf16_pairs_tile{192, 512};
inline constexpr ForwardTile avx2_tile{96, 256};
inline constexpr ForwardTile small_vector_tile{48, 256};

inline ForwardTile forward_tile(Isa isa, DType dtype, std::int64_t d, std::int64_t d_v) {
  if (isa == Isa::avx512_bf16 && dtype == DType::bfloat16) return bf16_pairs_tile;
  if (isa == Isa::avx512 || isa == Isa::avx512_bf16) {
    return d > 256 || d_v > 256 || dtype == DType::float64 ? avx512_wide_tile : avx512_tile;
  }
  return isa == Isa::avx2 ? avx2_tile : small_vector_tile;
}

}  // namespace onepass::cpu
