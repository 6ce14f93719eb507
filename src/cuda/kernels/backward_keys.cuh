// dV = 1/(1-p) P^T dO and dK = scale dS^T Q of any call (cuda.backward.generic), or of
// the tiles that a tensor-core kernel left.
//
// Grid:   blocks stride over the tiles; a tile is some keys of one (sequence, key/value head).
// Walk:   the group's query heads, their rows from the first, tile by tile (backward_tile.cuh).
// Registers: the sums take thread_keys * 4 for each 64 of d and of d_v, at most 72.
#include "cuda/kernels/backward_tile.cuh"

namespace {

// sums (keys, 64) += weights (rows, keys)^T sA (rows, 64), less the pairs with one of these flags
template <bool isolated>
__device__ void add_rows(const Shared& shared, const float (&weights)[tile_rows][tile_keys + 1],
                         int flags, float (&sums)[thread_keys][4]) {
  const int y = threadIdx.x / side, x = threadIdx.x % side;
#pragma unroll 4
  for (int r = 0; r < tile_rows; ++r) {
    const float4 row = *(const float4*)&shared.sA[r][4 * x];
#pragma unroll
    for (int j = 0; j < thread_keys; ++j) {
      const int key = y * thread_keys + j;
      if (isolated && (shared.left_out[r][key] & flags) != 0) continue;
      add(sums[j], weights[r][key], row);
    }
  }
}

template <int pieces, class T>
__device__ void add_product(Shared& shared, const float (&weights)[tile_rows][tile_keys + 1],
                            int flags, bool isolate, const Strided& x, const T* from, int64 row0,
                            int64 s_q, int width, Sums<pieces, thread_keys>& sums) {
#pragma unroll
  for (int part = 0; part < pieces; ++part) {
    __syncthreads();
    load(shared.sA, x, from, row0, s_q, part * piece, width);
    __syncthreads();
    if (leaves_out && isolate) {
      add_rows<true>(shared, weights, flags, sums.value[part]);
    } else {
      add_rows<false>(shared, weights, flags, sums.value[part]);
    }
  }
}

__device__ void take_tile(const Call& call, Shared& shared, int64 b, int64 h_kv, int64 col0) {
  const Backward& f = call.backward;
  Sums<d_pieces, thread_keys> rDK;
  Sums<d_v_pieces, thread_keys> rDV;
  for (int64 h = h_kv * f.group; h < (h_kv + 1) * f.group; ++h) {
    const Head head = head_of(call, b, h);
    const auto* const gQ = place<const config::Element>(f.q, b, h);
    const auto* const gDO = place<const config::DOutput>(f.dout, b, h);
    for (int64 row0 = 0; row0 < f.s_q; row0 += tile_rows) {
      bool isolate;
      Pairs pairs;
      if (!step(call, head, shared, row0, col0, isolate, pairs)) continue;
      if (f.dv.data) {
        add_product(shared, shared.sP, hidden | dropped, isolate, f.dout, gDO, row0, f.s_q,
                    config::d_v, rDV);
      }
      if (f.dk.data) {
        add_product(shared, shared.sDS, hidden, isolate, f.q, gQ, row0, f.s_q, config::d, rDK);
      }
    }
  }
  if (f.dk.data) {
    rDK.store_rows<config::DKey>(f.dk, b, h_kv, col0, f.s_kv, config::d, f.scale);
  }
  if (f.dv.data) {
    rDV.store_rows<config::DValue>(f.dv, b, h_kv, col0, f.s_kv, config::d_v, f.kept_scale);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads, 1)
    backward_keys(const __grid_constant__ Call call) {
  __shared__ Shared shared;
  const Backward& f = call.backward;
  if (config::again_keys > 0 && *f.again == 0) return;
  const int64 tiles = (f.s_kv + tile_keys - 1) / tile_keys, h_kv = f.h_q / f.group;
  for (int64 at = blockIdx.x; at < f.b * h_kv * tiles; at += gridDim.x) {
    // Of all heads the first keys first: under a causal mask more rows see them.
    const int64 head = at % (f.b * h_kv), col0 = at / (f.b * h_kv) * tile_keys;
    if (!wanted(f.again_keys, config::again_keys, head, f.s_kv, col0)) continue;
    take_tile(call, shared, head / h_kv, head % h_kv, col0);
  }
}
