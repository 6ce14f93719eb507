// Softmax of a warp's rows under wgmma: logits stay as they are, weights go packed into registers
// of their own, where the next product reads them.
//
// Most blocks take no maximum: their weights are 2^(S factor - subtracted) with the m of blocks
// before, and only where a row's sum of a block grows beyond `largest_sum`, the block's weights are
// made again from S with a new m.
#pragma once
#include "cuda/kernels/forward_pairs.cuh"
#include "cuda/kernels/forward_softmax.cuh"

namespace {

constexpr int weight_steps = config::tile_keys / 16;
using Weights = unsigned[weight_steps][4];  // A of p v

// Weights of float16 end at 65504.
__device__ float largest_sum(Bfloat16) { return 4294967296.0f; }
__device__ float largest_sum(Float16) { return 16384.0f; }

// rP = 2^(rS factor - subtracted), dropped pairs 0; `sum` of all of them.
__device__ void weigh_packed(const Call& call, const Head& head, Place at, const Logits& rS,
                             const Exponents& of, Weights& rP, float (&sum)[2]) {
  sum[0] = sum[1] = 0.0f;
#pragma unroll
  for (int step = 0; step < weight_steps; ++step) {
    float p[1][2][4];
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      float& x = p[0][j / 4][j % 4];
      x = exp2_fast(fmaf(rS[0][2 * step + j / 4][j % 4], of.factor, -of.subtracted[0][j % 4 / 2]));
      sum[j % 4 / 2] += x;
    }
    if constexpr (config::has_dropout) {
      drop_pairs(call, head, {at.row, at.col + 16 * step}, p);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float* const pair = &p[0][i / 2][2 * (i % 2)];
      rP[step][i] = pack(config::Element{}, pair[0], pair[1]);
    }
  }
}

// Of rows that have no m, or a large one, every weight is infinite: the block is made again.
__device__ Exponents steady_exponents(const RowState& state, float c) {
  Exponents of;
  of.factor = c * log2_e;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float m = state.m[0][i];
    of.subtracted[0][i] = m == -infinity() || is_large(m) ? -infinity() : m * log2_e;
  }
  return of;
}

// Whether some row of the warp needs its maximum.
__device__ bool overflows(const float (&sum)[2]) {
  const float most = largest_sum(config::Element{});
  return __any_sync(0xffffffffu, !(sum[0] <= most && sum[1] <= most));
}

}  // namespace
