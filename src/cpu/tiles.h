// Tile sizes of the CPU kernels, chosen by measurement.
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

// Emerald Rapids (2 MiB L2), one thread, s = 2048, share of the peak of the same process, best of
// many runs beside other work. Rows x keys:
// float32, d = 64: 96x256 77.2, 192x256 77.3, 384x256 78.0, 192x512 79.4, 384x512 79.5 %;
// d = 128: 192x256 76.1, 384x256 81.3, 192x512 79.6, 384x512 80.1 %. More rows also read K and V
// less often where a window leaves each query few keys.
inline constexpr ForwardTile avx512_tile{384, 512};
// float64, d = 64: 96x256 66.1, 192x256 65.6, 384x256 72.1, 192x512 74.9 %; d = 128: 192x256 79.6,
// 192x512 81.3 %. Float32 of d 256 has the same bytes.
inline constexpr ForwardTile avx512_middle_tile{192, 512};  // d or d_v above 128
// Beyond that a tile's K and V would leave the second cache; not tuned further.
inline constexpr ForwardTile avx512_wide_tile{96, 256};  // above 256
// bfloat16 pairs: 192x512 83.6 % (d = 64), 92.1 % (d = 128) of the dot products' peak.
inline constexpr ForwardTile bf16_pairs_tile{192, 512};
// float32, d = 64: 96x128 81.6, 96x256 85.6, 192x256 86.3, 192x512 87.2 %; d = 128: 96x256 82.6,
// 192x512 81.9 %.
inline constexpr ForwardTile avx2_tile{192, 256};
// Four floats a vector: the score buffer's size matters little; not tuned on hardware with NEON.
inline constexpr ForwardTile small_vector_tile{48, 256};

inline ForwardTile forward_tile(Isa isa, DType dtype, std::int64_t d, std::int64_t d_v) {
  if (isa == Isa::avx512_bf16 && dtype == DType::bfloat16) return bf16_pairs_tile;
  if (isa == Isa::avx512 || isa == Isa::avx512_bf16) {
    // Doubles take twice the room.
    const std::int64_t widest = (d > d_v ? d : d_v) * (dtype == DType::float64 ? 2 : 1);
    return widest > 256 ? avx512_wide_tile : widest > 128 ? avx512_middle_tile : avx512_tile;
  }
  return isa == Isa::avx2 ? avx2_tile : small_vector_tile;
}

/// Queries and keys per tile of the backward. `keys` decides the order of summation, as above.
struct BackwardTile {
  int rows;
  int keys;
};

// Measured as above, beside much other work. Rows x keys, float32, full / causal:
// d = 64: 96x128 75.9 / 72.3, 96x256 77.3 / 73.4, 192x128 75.3 / 71.3, 192x256 78.8 / 73.2,
// 384x256 77.2 / 72.5, 192x512 77.2 / 69.0 %; d = 128: 96x128 74.0 / 72.3, 96x256 77.6 / 68.2,
// 192x128 75.1 / 71.9, 192x256 81.5 / 76.4, 384x256 73.2 / 67.8, 192x512 75.3 / 63.7 %. AVX2,
// d = 64: 96x128 73.6, 96x256 74.7, 192x256 76.6 %.
inline constexpr BackwardTile backward_middle_tile{192, 256};
// Where K, V and their gradients would leave the second cache: d = 576 / 512: 96x128 63.8, 192x128
// 57.4, 192x256 56.0 %; float64, d = 128: 96x128 70.6, 96x256 54.9, 192x256 68.6 %.
inline constexpr BackwardTile backward_wide_tile{96, 128};
// Four floats a vector: not tuned on hardware with NEON.
inline constexpr BackwardTile backward_small_vector_tile{96, 128};

inline BackwardTile backward_tile(Isa isa, DType dtype, std::int64_t d, std::int64_t d_v) {
  if (isa == Isa::baseline || isa == Isa::neon) return backward_small_vector_tile;
  const std::int64_t widest = d > d_v ? d : d_v;
  return widest > (dtype == DType::float64 ? 64 : 256) ? backward_wide_tile : backward_middle_tile;
}

}  // namespace onepass::cpu
