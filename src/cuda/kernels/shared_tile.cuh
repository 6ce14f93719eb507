// Tiles of 16-bit or float32 elements in shared memory: rows of `width` elements in pieces of 16
// bytes, stored so that 8 neighbouring rows have the same piece in 8 different groups of banks, as
// ldmatrix reads them.
#pragma once
#include "cuda/kernels/mma.cuh"

namespace {

template <int tile_rows, int tile_width, int element_bytes = 2>  // width: a multiple of 16
struct SharedTile {
  static constexpr int rows = tile_rows, width = tile_width;
  static constexpr int pieces = width * element_bytes / 16;  // of a row
  static constexpr int bytes = rows * pieces * 16;
  // Rows repeat their banks after 8 / turns rows; from there on pieces are exchanged.
  static constexpr int turns = pieces % 8 == 0 ? 8 : pieces % 4 == 0 ? 4 : 2;

  static __device__ int turn(int row) { return row / (8 / turns) % turns; }
  static __device__ int offset_bytes(int row, int piece) {
    return (row * pieces + (piece ^ turn(row))) * 16;
  }

  // Rows [s0, s0 + rows) of a (s, d) matrix of rows `stride` elements apart, by all threads of the
  // block; zeros beyond s_end and beyond the real width.
  template <int threads, int real_width, class Element>
  static __device__ void load(unsigned to, const Element* from, long long stride, int s0,
                              int s_end) {
    static_assert(element_bytes == 2 && sizeof(Element) == 2);
    // Read anew each time: what follows from it would else stay in registers through the loop.
    int thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
#pragma unroll
    for (int i = 0; i < (rows * pieces + threads - 1) / threads; ++i) {
      const int at = i * threads + thread, row = at / pieces, piece = at % pieces;
      if (rows * pieces % threads != 0 && at >= rows * pieces) break;
      const int left = 2 * real_width - 16 * piece;  // bytes of data from this piece on
      const bool inside = s0 + row < s_end && (real_width == width || left > 0);
      const int bytes_here = inside ? (real_width == width || left > 16 ? 16 : left) : 0;
      copy_async(to + offset_bytes(row, piece),
                 from + (s0 + row) * stride + (inside ? 8 * piece : 0), bytes_here);
    }
  }
};

// A lane's place in the tiles that ldmatrix reads: 16 rows x 32 bytes from (row, byte 32 k) on.
// Rows move by multiples of 8, which leaves the exchange of pieces as it is. Tiles begin at
// multiples of 128 bytes: pieces are then exchanged in the low bits of the address, and all of a
// place that is known while compiling is one exclusive or and one offset.
template <class Tile>
struct Reader {
  unsigned first;  // of the lane's row in rows 0 to 15, and of its piece there
  __device__ Reader(unsigned tile, int lane_row, int lane_piece)
      : first(tile + lane_row * Tile::pieces * 16 + (lane_piece ^ Tile::turn(lane_row)) * 16) {}
  __device__ unsigned address(int row, int k) const {
    constexpr int turned_bytes = Tile::turns * 16;
    return (first ^ (32 * k % turned_bytes)) + row * Tile::pieces * 16 +
           32 * k / turned_bytes * turned_bytes;
  }
};

// For A (queries, d) and for B transposed (keys, d_v): matrices 0 to 3 are rows 0 and 8 of the left
// half, then of the right.
template <class Tile>
__device__ Reader<Tile> rows_first(unsigned tile, int lane) {
  return Reader<Tile>(tile, lane % 16, lane / 16);
}
// For B (keys, d): the left and right half of rows 0, then of rows 8.
template <class Tile>
__device__ Reader<Tile> halves_first(unsigned tile, int lane) {
  return Reader<Tile>(tile, lane % 8 + lane / 16 * 8, lane / 8 % 2);
}

}  // namespace
