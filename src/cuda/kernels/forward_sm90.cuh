// Attention forward on Hopper, 16-bit inputs: o = softmax(mask(score(scale q k^T))) v.
//
// Grid:   one block for each SM, which takes tile after tile of tile_rows queries of one (sequence,
//         query head).
// Block:  one warpgroup, of which one warp loads; two or three that compute, each 64 rows of the
//         tile, their logits, weights and sums in registers.
// Walk:   tile_keys keys at a time between the mask's limits, the last ones first. The products of
//         a block with k run together with those of the block before with v (FlashAttention-3, Shah
//         et al. 2024), the softmax of the block under the latter.
#include "cuda/kernels/forward_isolated.cuh"
#include "cuda/kernels/forward_rows.cuh"
#include "cuda/kernels/forward_sm90_load.cuh"
#include "cuda/kernels/forward_sm90_softmax.cuh"

namespace {

// One warpgroup's way through the stages.
struct Walk {
  Stages at;
  int warpgroup;  // that computes
  Ring<config::query_stages> q;
  Ring<config::stages> k, v;
};

__device__ void release(unsigned barrier) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) arrive(barrier);
}

// rS (64, keys) = sQ (64, d) sK (keys, d)^T, under way
__device__ void start_keys(const Walk& walk, Logits& rS) {
  const Matrix q =
      matrix_at(walk.at.q(walk.q.stage) + walk.warpgroup * 64 * slab_row_bytes, config::tile_rows);
  const Matrix k = matrix_at(walk.at.k(walk.k.stage), config::tile_keys);
#pragma unroll
  for (int step = 0; step < padded_d / 16; ++step) {
    const int slab = step / 4, within = step % 4 * 32;
    const Matrix a = moved(q, slab * config::tile_rows * slab_row_bytes + within);
    const Matrix b = moved(k, slab * config::tile_keys * slab_row_bytes + within);
    if (step == 0) {
      multiply_keys<0>(rS[0], a, b);
    } else {
      multiply_keys<1>(rS[0], a, b);
    }
  }
  commit_products();
}

// rO (64, d_v) += rP (64, keys) sV (keys, d_v), under way
__device__ void start_values(const Walk& walk, const Weights& rP, Sums& rO) {
  const Matrix v = matrix_at(walk.at.v(walk.v.stage), config::tile_keys);
#pragma unroll
  for (int step = 0; step < weight_steps; ++step) {
    multiply_values(rO[0], rP[step], moved(v, step * 16 * slab_row_bytes));
  }
  commit_products();
}

// S of a block and the O of the block before it, under way until finish_values.
template <bool has_weights>
__device__ void multiply_block(Walk& walk, Logits& rS, Weights& rP, Sums& rO) {
  wait(walk.at.k_full(walk.k.stage), walk.k.parity);
  pin(rS[0]), pin(rP), pin(rO[0]);
  fence_products();
  start_keys(walk, rS);
  if constexpr (has_weights) {
    wait(walk.at.v_full(walk.v.stage), walk.v.parity);
    fence_products();
    start_values(walk, rP, rO);
  }
  wait_products<has_weights ? 1 : 0>();
  pin(rS[0]);
  release(walk.at.k_empty(walk.k.stage));
  walk.k.next();
}

__device__ void finish_values(Walk& walk, Weights& rP, Sums& rO) {
  wait_products<0>();
  pin(rO[0]), pin(rP);
  release(walk.at.v_empty(walk.v.stage));
  walk.v.next();
}

// What a warp's lanes know of their rows while they walk.
struct Rows {
  TilePlace tile;
  int row;  // of the lane's first row
  float c;
  RowState state;
};

__device__ Place place_of(const Rows& rows, int block) {
  return {rows.row, block * config::tile_keys + (int)threadIdx.x % 4 * 2};
}
__device__ Head head_of(const Call& call, const Rows& rows) {
  return head_of(call, rows.tile.b, rows.tile.h);
}

// A block that may hide pairs, or the first one. rP: of the block before, then of this one.
template <bool has_weights, bool may_hide>
__device__ void exact_block(const Call& call, Walk& walk, Rows& rows, int block, Weights& rP,
                            Sums& rO) {
  Logits rS;
  multiply_block<has_weights>(walk, rS, rP, rO);
  const Place at = place_of(rows, block);
  const Head head = head_of(call, rows);
  if constexpr (config::has_score) score_pairs(call, head, at, rS);
  if constexpr (may_hide) hide_pairs(call, head, at, rS);
  float alpha[2];
  const bool moved =
      raise_max(rows.state, rS, rows.c, [&](int i, float factor) { alpha[i] = factor; });
  if constexpr (has_weights) {
    finish_values(walk, rP, rO);
    if (moved) rescale_row(rO, 0, alpha[0]), rescale_row(rO, 1, alpha[1]);
  }
  float sum[2];
  weigh_packed(call, head, at, rS, exponents_of(rows.state, rS, rows.c), rP, sum);
  rows.state.l[0][0] += sum[0], rows.state.l[0][1] += sum[1];
}

// A block without hidden pairs, from the weights of the block before to its own.
__device__ void steady_block(const Call& call, Walk& walk, Rows& rows, int block, Exponents& of,
                             Weights& before, Weights& now, Sums& rO) {
  Logits rS;
  multiply_block<true>(walk, rS, before, rO);
  const Place at = place_of(rows, block);
  if constexpr (config::has_score) score_pairs(call, head_of(call, rows), at, rS);
  float sum[2];
  weigh_packed(call, head_of(call, rows), at, rS, of, now, sum);
  if (overflows(sum)) {
    wait_products<0>();
    pin(rO[0]);
    raise_max(rows.state, rS, rows.c, [&](int i, float alpha) { rescale_row(rO, i, alpha); });
    weigh_packed(call, head_of(call, rows), at, rS, exponents_of(rows.state, rS, rows.c), now, sum);
    of = steady_exponents(rows.state, rows.c);
  }
  finish_values(walk, before, rO);
  rows.state.l[0][0] += sum[0], rows.state.l[0][1] += sum[1];
}

// All blocks of the tile; the weights of the last one are multiplied at the end.
__device__ void walk_blocks(const Call& call, Walk& walk, Rows& rows, const Blocks& blocks,
                            Sums& rO) {
  Weights rP;
  int block = blocks.last;
  const int full_end = block - blocks.before - blocks.full, end = block - blocks.count;
  if (blocks.before > 0) {
    exact_block<false, true>(call, walk, rows, block--, rP, rO);
  } else {
    exact_block<false, false>(call, walk, rows, block--, rP, rO);
  }
#pragma unroll 1
  for (; block > full_end + blocks.full; --block) {
    exact_block<true, true>(call, walk, rows, block, rP, rO);
  }
  Exponents of = steady_exponents(rows.state, rows.c);
  Weights other;
#pragma unroll 1
  for (; block > full_end + 1; block -= 2) {
    steady_block(call, walk, rows, block, of, rP, other, rO);
    steady_block(call, walk, rows, block - 1, of, other, rP, rO);
  }
  // Where registers are short the odd one is exact.
  if (column_blocks <= 16 && block > full_end) {
    steady_block(call, walk, rows, block--, of, rP, other, rO);
#pragma unroll
    for (int i = 0; i < 4 * weight_steps; ++i) rP[i / 4][i % 4] = other[i / 4][i % 4];
  }
#pragma unroll 1
  for (; block > end; --block) exact_block<true, true>(call, walk, rows, block, rP, rO);
  release(walk.at.q_empty(walk.q.stage));
  wait(walk.at.v_full(walk.v.stage), walk.v.parity);
  pin(rP), pin(rO[0]);
  fence_products();
  start_values(walk, rP, rO);
  finish_values(walk, rP, rO);
}

__device__ void compute_all(const Call& call, Walk& walk, const Work* works, float2* scratch) {
  const Forward& f = call.forward;
  const int warp = threadIdx.x / 32 - 4, lane = threadIdx.x % 32;
  Ring<work_stages> w;
#pragma unroll 1
  while (true) {
    wait(walk.at.work_full(w.stage), w.parity);
    const Work work = works[w.stage];
    release(walk.at.work_empty(w.stage));
    w.next();
    if (work.tile < 0) return;
    Rows rows;
    rows.tile = tile_place(f, work.tile);
    rows.row = rows.tile.row + 16 * warp + lane / 4;
    rows.c = config::has_score ? 1.0f : f.scale;
    rows.state = first_state(call, rows.tile.h);
    Sums rO = {};
    const Blocks blocks = blocks_of(work.limits);
    if (blocks.count > 0) {
      wait(walk.at.q_full(walk.q.stage), walk.q.parity);
      walk_blocks(call, walk, rows, blocks, rO);
      walk.q.next();
    }
    bool bad[1][2];
    const Head head = head_of(call, rows);
    const Place at{rows.row, 0};
    store_rows(f, head, at, rows.state, rO, bad);
    isolate_rows(call, head, work.limits, at, rows.state, bad, scratch);
  }
}

struct MappedCall {
  TensorMaps maps;
  int* drawn;  // how many tiles besides the first of each block; null: they are not drawn
  Call call;
};

}  // namespace

extern "C" __global__ void __launch_bounds__(32 * config::warps + 128, 1)
    forward_sm90(const __grid_constant__ MappedCall all) {
  extern __shared__ __align__(16) char shared[];
  __shared__ float2 scratch[config::warps][16];
  __shared__ Work works[work_stages];
  const Stages at{(shared_address(shared) + 1023) / 1024 * 1024};
  if (threadIdx.x == 0) make_barriers(at);
  __syncthreads();
  // The same for all lanes: what is made from it goes into uniform registers.
  const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0);
  if (warp < 4) {
    fewer_registers<config::loader_registers>();
    if (warp == 0) load_all(all.call, all.maps, all.drawn, at, works);
  } else {
    more_registers<config::compute_registers>();
    Walk walk{at, warp / 4 - 1};
    compute_all(all.call, walk, works, scratch[warp - 4]);
  }
}
