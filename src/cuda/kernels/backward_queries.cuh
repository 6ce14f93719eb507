// dQ = scale dS K of any call (cuda.backward.generic), or of the tiles that a tensor-core kernel
// left.
//
// Grid:   blocks stride over the tiles; a tile is some rows of one (sequence, query head).
// Walk:   keys from the first, tile by tile (backward_tile.cuh).
// Registers: the sums take thread_rows * 4 for each 64 of d, at most 72.
#include "cuda/kernels/backward_tile.cuh"

namespace {

// sums (rows, 64) += sDS (rows, keys) sB (keys, 64), less hidden pairs
template <bool isolated>
__device__ void add_keys(const Shared& shared, float (&sums)[thread_rows][4]) {
  const int y = threadIdx.x / side, x = threadIdx.x % side;
#pragma unroll 4
  for (int key = 0; key < tile_keys; ++key) {
    const float4 row = *(const float4*)&shared.sB[key][4 * x];
#pragma unroll
    for (int i = 0; i < thread_rows; ++i) {
      const int r = y * thread_rows + i;
      if (isolated && (shared.left_out[r][key] & hidden) != 0) continue;
      add(sums[i], shared.sDS[r][key], row);
    }
  }
}

__device__ void take_tile(const Call& call, Shared& shared, int64 b, int64 h, int64 row0) {
  const Backward& f = call.backward;
  const Head head = head_of(call, b, h);
  const auto* const gK = place<const config::Element>(f.k, b, head.h_kv);
  Sums<d_pieces, thread_rows> rDQ;
  for (int64 col0 = 0; col0 < f.s_kv; col0 += tile_keys) {
    bool isolate;
    Pairs pairs;
    if (!step(call, head, shared, row0, col0, isolate, pairs)) continue;
#pragma unroll
    for (int part = 0; part < d_pieces; ++part) {
      __syncthreads();
      load(shared.sB, f.k, gK, col0, f.s_kv, part * piece, config::d);
      __syncthreads();
      if (leaves_out && isolate) {
        add_keys<true>(shared, rDQ.value[part]);
      } else {
        add_keys<false>(shared, rDQ.value[part]);
      }
    }
  }
  rDQ.store_rows<config::DQuery>(f.dq, b, h, row0, f.s_q, config::d, f.scale);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads, 1)
    backward_queries(const __grid_constant__ Call call) {
  __shared__ Shared shared;
  const Backward& f = call.backward;
  if (config::again_rows > 0 && *f.again == 0) return;
  const int64 tiles = (f.s_q + tile_rows - 1) / tile_rows, heads = f.b * f.h_q;
  for (int64 at = blockIdx.x; at < heads * tiles; at += gridDim.x) {
    // Of all heads the last rows first: under a causal mask they see more keys.
    const int64 head = at % heads, row0 = (tiles - 1 - at / heads) * tile_rows;
    if (!wanted(f.again_rows, config::again_rows, head, f.s_q, row0)) continue;
    take_tile(call, shared, head / f.h_q, head % f.h_q, row0);
  }
}
