// What the tensor-core forward does otherwise where its inputs are float32.
#pragma once
#include "cuda/kernels/forward_products.cuh"

namespace {

// rS (warp's rows, keys) = sQ (warp's rows, d) sK (keys, d)^T. The tensor cores round their sums
// towards 0, each time: only those of 8 products are theirs, the small ones first.
__device__ void multiply_keys(float, Logits& rS, const Reader<QueryTile>& sQ,
                              const Reader<KeyTile>& sK) {
#pragma unroll
  for (int i = 0; i < 4 * row_blocks * key_blocks; ++i) {
    rS[i / (4 * key_blocks)][i / 4 % key_blocks][i % 4] = 0.0f;
  }
#pragma unroll 2  // more would leave too few registers
  for (int k = 0; k < padded_d / 8; ++k) {
    unsigned rQ[row_blocks][4];
#pragma unroll
    for (int row = 0; row < row_blocks; ++row) load_matrices(rQ[row], sQ.address(16 * row, k));
#pragma unroll
    for (int key = 0; key < key_blocks; key += 2) {
      unsigned rK[4];
      load_matrices(rK, sK.address(8 * key, k));
#pragma unroll
      for (int i = 0; i < 2 * row_blocks; ++i) {
        float sums[4] = {};
        multiply(float{}, sums, rQ[i / 2], rK[i % 2 * 2], rK[i % 2 * 2 + 1]);
#pragma unroll
        for (int j = 0; j < 4; ++j) rS[i / 2][key + i % 2][j] += sums[j];
      }
    }
  }
}

// Logits that are not finite once more, by the FMA units: of an infinity the halves of
// mma_float32.cuh are infinity and NaN.
__device__ void repair_logits(Logits& rS, unsigned sQ, unsigned sK, int lane) {
  float vote = 0.0f;  // x * 0 is NaN for infinities and NaN
#pragma unroll
  for (int i = 0; i < 4 * row_blocks * key_blocks; ++i) {
    vote = fmaf(rS[i / (4 * key_blocks)][i / 4 % key_blocks][i % 4], 0.0f, vote);
  }
  if (!__any_sync(0xffffffffu, vote != 0.0f)) return;
#pragma unroll
  for (int i = 0; i < 4 * row_blocks * key_blocks; ++i) {
    float& s = rS[i / (4 * key_blocks)][i / 4 % key_blocks][i % 4];
    if (s - s == 0.0f) continue;
    const int row = i / (4 * key_blocks) * 16 + i % 4 / 2 * 8 + lane / 4;
    const int key = i / 4 % key_blocks * 8 + lane % 4 * 2 + i % 2;
    s = 0.0f;
#pragma unroll 1
    for (int at = 0; at < padded_d; ++at) {
      const unsigned q = load_shared(sQ + QueryTile::offset_bytes(row, at / 4) + at % 4 * 4);
      const unsigned k = load_shared(sK + KeyTile::offset_bytes(key, at / 4) + at % 4 * 4);
      s = fmaf(__uint_as_float(q), __uint_as_float(k), s);
    }
  }
}

// A lane's places in sV: of 8 keys it reads 2 t and 2 t + 1, of 8 columns g.
struct ValueReaders {
  Reader<ValueTile> even, odd;
};

__device__ ValueReaders reader_of_values(float, unsigned sV, int lane) {
  const unsigned tile = sV + lane / 4 % 4 * 4;
  return {Reader<ValueTile>(tile, lane % 4 * 2, lane / 16),
          Reader<ValueTile>(tile, lane % 4 * 2 + 1, lane / 16)};
}

// rO (warp's rows, d_v) += rP (warp's rows, keys) sV (keys, d_v). The tensor cores round their sums
// towards 0, each time: only those of one tile's keys are theirs. Keys are multiplied in the order
// 0, 2, 4, 6, 1, 3, 5, 7, in which a lane has the weights.
__device__ void multiply_values(float, Sums& rO, const Logits& rP, const ValueReaders& sV) {
#pragma unroll
  for (int column = 0; column < column_blocks; column += 2) {
    float sums[2][row_blocks][4] = {};
#pragma unroll
    for (int key = 0; key < key_blocks; ++key) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const unsigned b0 = load_shared(sV.even.address(8 * key, column + i));
        const unsigned b1 = load_shared(sV.odd.address(8 * key, column + i));
#pragma unroll
        for (int row = 0; row < row_blocks; ++row) {
          const float(&p)[4] = rP[row][key];
          const unsigned weights[4] = {__float_as_uint(p[0]), __float_as_uint(p[2]),
                                       __float_as_uint(p[1]), __float_as_uint(p[3])};
          multiply(float{}, sums[i][row], weights, b0, b1);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < 8 * row_blocks; ++i) {
      rO[i / 4 % row_blocks][column + i / (4 * row_blocks)][i % 4] +=
          sums[i / (4 * row_blocks)][i / 4 % row_blocks][i % 4];
    }
  }
}

}  // namespace
