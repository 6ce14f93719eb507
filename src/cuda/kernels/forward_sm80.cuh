// Attention forward on the tensor cores of sm_80 and newer: o = softmax(mask(score(scale q k^T))) v
// by the online softmax. The walk and its overlap of copies with products are those of
// FlashAttention-2 (Dao 2023). Float32 inputs are multiplied as in mma_float32.cuh.
//
// Grid:   a block takes tile_rows queries of one (sequence, query head): heads in sections whose
// keys
//         and values fit the L2 cache, in a section the last rows first, which have most keys under
//         a causal mask.
// Block:  each warp owns 16 or 32 of the rows, their weights and sums in registers.
// Walk:   tile_keys keys at a time between the mask's limits, the last ones first.
// Shared: sQ, sK, sV, one tile each; sV arrives under q k^T, the next sK under softmax and p v. Of
//         rows beyond 256 columns sK holds a few pieces.
#include "cuda/kernels/forward_float32.cuh"
#include "cuda/kernels/forward_isolated.cuh"
#include "cuda/kernels/forward_rows.cuh"
#include "cuda/kernels/forward_streamed.cuh"

namespace {

struct TilePlace {
  int64 b, h;
  int row;
};

__device__ TilePlace tile_place(const Forward& f) {
  const int64 row_tiles = (f.s_q + config::tile_rows - 1) / config::tile_rows;
  const int64 heads = f.b * f.h_q, section = blockIdx.x / (row_tiles * f.section_heads);
  const int64 first = section * f.section_heads, rest = blockIdx.x - first * row_tiles;
  const int64 width = heads - first < f.section_heads ? heads - first : f.section_heads;
  const int64 head = first + rest % width;
  return {head / f.h_q, head % f.h_q, int(row_tiles - 1 - rest / width) * config::tile_rows};
}

// sQ = -sQ, where the scale is negative: the softmax takes |scale|.
__device__ void negate_queries(unsigned* sQ) {
  constexpr unsigned signs = element_bytes == 4 ? 0x80000000u : 0x80008000u;
  for (int i = threadIdx.x; i < QueryTile::bytes / 4; i += threads) sQ[i] ^= signs;
}

// What is the block's stays in shared memory: registers are short.
struct Shared {
  TilePlace tile;
  Limits limits;
  const config::Element *k, *v;  // of the tile's (sequence, key/value head)
};

// `scratch`: the warp's part of sQ, which is read no more, neither by this warp nor by another.
__device__ void finish(const Call& call, Shared& shared, RowState& state, const Sums& rO,
                       float2* scratch) {
  __syncthreads();
  const TilePlace tile = shared.tile;
  const Head head = head_of(call, tile.b, tile.h);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const Place at{tile.row + warp * 16 * row_blocks + lane / 4, 0};
  bool bad[row_blocks][2];
  store_rows(call.forward, head, at, state, rO, bad);
  isolate_rows(call, head, shared.limits, at, state, bad, scratch);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads, config::blocks_per_sm)
    forward_sm80(const __grid_constant__ Call call) {
  extern __shared__ __align__(128) uint4 tiles[];
  __shared__ Shared shared;
  const Forward& f = call.forward;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const unsigned sQ = shared_address(tiles), sK = sQ + QueryTile::bytes;
  const unsigned sV = sK + keys_bytes;
  const int s_q = (int)f.s_q, s_kv = (int)f.s_kv;

  const TilePlace tile = tile_place(f);
  const Head head = head_of(call, tile.b, tile.h);
  if (threadIdx.x == 0) {
    shared.tile = tile;
    shared.k = place<const config::Element>(f.k, tile.b, tile.h / f.group);
    shared.v = place<const config::Element>(f.v, tile.b, tile.h / f.group);
  }
  find_limits<mask_text::PerRow>(call, head, tile.row, shared.limits);
  const auto load_k = [&](int from) {
    if constexpr (is_streamed) {
      load_first_pieces(sK, shared.k, f.k.s, from, s_kv);
    } else {
      load_tile<KeyTile, config::d>(sK, shared.k, f.k.s, from, s_kv);
    }
    commit_copies();
  };
  const auto load_v = [&](int from) {
    load_tile<ValueTile, config::d_v>(sV, shared.v, f.v.s, from, s_kv);
    commit_copies();
  };
  const auto is_visited = [&](int from) { return from + config::tile_keys > shared.limits.first; };
  int col0 = shared.limits.last / config::tile_keys * config::tile_keys;
  if (shared.limits.last < shared.limits.first) col0 = -config::tile_keys;

  load_tile<QueryTile, config::d>(sQ, place<const config::Element>(f.q, tile.b, tile.h), f.q.s,
                                  tile.row, s_q);
  if (is_visited(col0)) load_k(col0);
  if (!config::has_score && f.scale < 0.0f) {
    wait_copies<0>();
    __syncthreads();
    negate_queries((unsigned*)tiles);
  }

  constexpr int warp_rows = 16 * row_blocks, warp_bytes = warp_rows * QueryTile::pieces * 16;
  const auto queries = rows_first<QueryTile>(sQ + warp * warp_bytes, lane);
  const auto keys = halves_first<KeyTile>(sK, lane);
  const auto values = reader_of_values(config::Element{}, sV, lane);
  const float c = config::has_score ? 1.0f : fabsf(f.scale);
  RowState state = first_state(call, tile.h);
  Sums rO = {};

#pragma unroll 1
  for (; is_visited(col0); col0 -= config::tile_keys) {
    // S = Q K^T, while V arrives
    wait_copies<0>();
    __syncthreads();
    load_v(col0);
    Logits rS;
    if constexpr (is_streamed) {
      multiply_streamed_keys(rS, queries, sK, shared.k, f.k.s, col0, s_kv, lane);
    } else {
      multiply_keys(config::Element{}, rS, queries, keys);
    }
    if constexpr (element_bytes == 4) repair_logits(rS, sQ + warp * warp_bytes, sK, lane);
    wait_copies<0>();
    __syncthreads();

    // P = softmax(S), O += P V, while the next K arrives
    if (is_visited(col0 - config::tile_keys)) load_k(col0 - config::tile_keys);
    const Place at{shared.tile.row + warp * warp_rows + lane / 4, col0 + lane % 4 * 2};
    if constexpr (config::has_score) score_pairs(call, head, at, rS);
    const Limits limits = shared.limits;
    if (col0 < limits.full_first || col0 + config::tile_keys - 1 > limits.full_last) {
      hide_pairs(call, head_of(call, shared.tile.b, shared.tile.h), at, rS);
    }
    raise_max(state, rS, c, [&](int i, float alpha) { rescale_row(rO, i, alpha); });
    weigh(state, rS, c);
    if constexpr (config::has_dropout) drop_pairs(call, head, at, rS);
    multiply_values(config::Element{}, rO, rS, values);
  }

  finish(call, shared, state, rO, (float2*)((char*)tiles + warp * warp_bytes));
}
