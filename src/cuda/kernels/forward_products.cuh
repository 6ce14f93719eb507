// The two products of a tile of the tensor-core forward, in fragments of mma.cuh; those of
// float32 that differ are in forward_float32.cuh.
#pragma once
#include "cuda/kernels/forward_fragments.cuh"
#include "cuda/kernels/mma_float32.cuh"
#include "cuda/kernels/shared_tile.cuh"

namespace {

constexpr bool is_streamed = config::ring > 0;  // keys come in pieces of 64 columns
constexpr int piece_width = 64, key_pieces = (config::d + piece_width - 1) / piece_width;
constexpr int query_width = is_streamed ? key_pieces * piece_width : padded_d;

constexpr int element_bytes = sizeof(config::Element);
using QueryTile = SharedTile<config::tile_rows, query_width, element_bytes>;
using KeyTile = SharedTile<config::tile_keys, padded_d, element_bytes>;
using ValueTile = SharedTile<config::tile_keys, padded_d_v, element_bytes>;

// Rows [s0, s0 + rows) of a (s, d) matrix of s_end rows, `stride` elements apart, by all threads of
// the block; zeros beyond s_end and beyond the real width. As SharedTile::load, but the address of
// a thread's next piece is made from the last: two such loads in one loop leave more registers.
template <class Tile, int real_width>
__device__ void load_tile(unsigned to, const config::Element* matrix, int64 stride, int s0,
                          int s_end) {
  constexpr int row_step = threads / Tile::pieces, steps = (Tile::rows + row_step - 1) / row_step;
  // Steps after which rows have moved by a multiple of 8, which exchanges no pieces.
  constexpr int period = row_step % 8 == 0 ? 1 : row_step % 4 == 0 ? 2 : row_step % 2 == 0 ? 4 : 8;
  constexpr bool whole = real_width == Tile::width;  // no padding to leave out
  const int row = (int)threadIdx.x / Tile::pieces, piece = (int)threadIdx.x % Tile::pieces;
  if (threads % Tile::pieces != 0 && row >= row_step) return;  // threads left over
  const int left = element_bytes * real_width - 16 * piece;
  const int bytes_here = whole || left > 16 ? 16 : left < 0 ? 0 : left;
  const int rows_here = s_end - s0 - row;
  const auto* from = matrix + (s0 + row) * stride;
  // As 16-byte pieces, so that no 64-bit offset of the piece lives from load to load.
  from = (const config::Element*)((const uint4*)from + (whole || left > 0 ? (unsigned)piece : 0u));
#pragma unroll
  for (int i = 0; i < steps; ++i) {
    if (Tile::rows % row_step != 0 && row + i * row_step >= Tile::rows) break;
    const int near = i % period * row_step, far = i * row_step - near;
    copy_async(to + Tile::offset_bytes(row + near, piece) + far * Tile::pieces * 16, from,
               i * row_step < rows_here ? bytes_here : 0);
    from += row_step * stride;
  }
}

// rS (warp's rows, keys) += sQ (warp's rows, 16 steps) sK (keys, 16 steps)^T
template <int steps, int unrolled, class Element, class KeyReader>
__device__ void add_product(Element, Logits& rS, const Reader<QueryTile>& sQ, const KeyReader& sK) {
#pragma unroll unrolled
  for (int k = 0; k < steps; ++k) {
    unsigned rQ[row_blocks][4];
#pragma unroll
    for (int row = 0; row < row_blocks; ++row) load_matrices(rQ[row], sQ.address(16 * row, k));
#pragma unroll
    for (int key = 0; key < key_blocks; key += 2) {
      unsigned rK[4];
      load_matrices(rK, sK.address(8 * key, k));
#pragma unroll
      for (int row = 0; row < row_blocks; ++row) {
        multiply(Element{}, rS[row][key], rQ[row], rK[0], rK[1]);
        multiply(Element{}, rS[row][key + 1], rQ[row], rK[2], rK[3]);
      }
    }
  }
}

// rS (warp's rows, keys) = sQ (warp's rows, d) sK (keys, d)^T
template <class Element>
__device__ void multiply_keys(Element, Logits& rS, const Reader<QueryTile>& sQ,
                              const Reader<KeyTile>& sK) {
#pragma unroll
  for (int row = 0; row < row_blocks; ++row) {
#pragma unroll
    for (int key = 0; key < key_blocks; ++key) {
#pragma unroll
      for (int i = 0; i < 4; ++i) rS[row][key][i] = 0.0f;
    }
  }
  // Unrolled as a whole, sums of 32 rows would leave too few registers to the fragments in flight.
  constexpr int steps = padded_d / 16, unrolled = row_blocks == 1 || padded_d <= 64 ? steps : 2;
  add_product<steps, unrolled>(Element{}, rS, sQ, sK);
}

template <class Element>
__device__ Reader<ValueTile> reader_of_values(Element, unsigned sV, int lane) {
  return rows_first<ValueTile>(sV, lane);
}

// rO (warp's rows, d_v) += rP (warp's rows, keys) sV (keys, d_v), the weights rounded to the dtype
template <class Element>
__device__ void multiply_values(Element, Sums& rO, const Logits& rP, const Reader<ValueTile>& sV) {
#pragma unroll
  for (int key = 0; key < key_blocks; key += 2) {
    unsigned weights[row_blocks][4];
#pragma unroll
    for (int row = 0; row < row_blocks; ++row) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float* const pair = &rP[row][key + i / 2][2 * (i % 2)];
        weights[row][i] = pack(Element{}, pair[0], pair[1]);
      }
    }
#pragma unroll
    for (int column = 0; column < column_blocks; column += 2) {
      unsigned rV[4];
      load_transposed(rV, sV.address(8 * key, column / 2));
#pragma unroll
      for (int row = 0; row < row_blocks; ++row) {
        multiply(Element{}, rO[row][column], weights[row], rV[0], rV[1]);
        multiply(Element{}, rO[row][column + 1], weights[row], rV[2], rV[3]);
      }
    }
  }
}

}  // namespace
