// The tiles of the sm_90 forward: which block works on which, in which order, and where their
// parts lie in shared memory.
#pragma once
#include "cuda/kernels/forward_pairs.cuh"
#include "cuda/kernels/tensor_copy.cuh"
#include "cuda/kernels/wgmma.cuh"

namespace {

constexpr int d_slabs = (config::d + slab_width - 1) / slab_width;
constexpr int d_v_slabs = (config::d_v + slab_width - 1) / slab_width;
constexpr int query_bytes = config::tile_rows * slab_row_bytes * d_slabs;
constexpr int key_bytes = config::tile_keys * slab_row_bytes * d_slabs;
constexpr int value_bytes = config::tile_keys * slab_row_bytes * d_v_slabs;

// What the warp that loads tells the others of a tile; no tile is left where it is below 0.
struct Work {
  int tile;
  Limits limits;
};
constexpr int work_stages = 2;

// Shared memory: sQ, sK, sV and their barriers. A stage is full when its copies arrived, empty when
// all warps have read it.
struct Stages {
  unsigned begin;
  __device__ unsigned q(int stage) const { return begin + stage * query_bytes; }
  __device__ unsigned k(int stage) const { return q(config::query_stages) + stage * key_bytes; }
  __device__ unsigned v(int stage) const { return k(config::stages) + stage * value_bytes; }
  __device__ unsigned q_full(int stage) const { return v(config::stages) + 16 * stage; }
  __device__ unsigned q_empty(int stage) const { return q_full(stage) + 8; }
  __device__ unsigned k_full(int stage) const { return q_full(config::query_stages) + 16 * stage; }
  __device__ unsigned k_empty(int stage) const { return k_full(stage) + 8; }
  __device__ unsigned v_full(int stage) const { return k_full(config::stages) + 16 * stage; }
  __device__ unsigned v_empty(int stage) const { return v_full(stage) + 8; }
  __device__ unsigned work_full(int stage) const { return v_full(config::stages) + 16 * stage; }
  __device__ unsigned work_empty(int stage) const { return work_full(stage) + 8; }
};

__device__ void make_barriers(const Stages& at) {
  for (int i = 0; i < config::query_stages; ++i) {
    make_barrier(at.q_full(i), 1), make_barrier(at.q_empty(i), config::warps);
  }
  for (int i = 0; i < config::stages; ++i) {
    make_barrier(at.k_full(i), 1), make_barrier(at.k_empty(i), config::warps);
    make_barrier(at.v_full(i), 1), make_barrier(at.v_empty(i), config::warps);
  }
  for (int i = 0; i < work_stages; ++i) {
    make_barrier(at.work_full(i), 1), make_barrier(at.work_empty(i), config::warps);
  }
  publish_barriers();
}

struct TilePlace {
  int64 b, h;
  int row;
};

// Heads in sections whose keys and values fit the L2 cache; in a section the last rows first, which
// have most keys under a causal mask.
__device__ TilePlace tile_place(const Forward& f, int tile_index) {
  const unsigned tile = tile_index;
  const unsigned row_tiles = (unsigned)(f.s_q + config::tile_rows - 1) / config::tile_rows;
  const unsigned heads = (unsigned)(f.b * f.h_q), section_heads = (unsigned)f.section_heads;
  const unsigned section = tile / (row_tiles * section_heads), first = section * section_heads;
  const unsigned rest = tile - first * row_tiles;
  const unsigned width = min(heads - first, section_heads);
  const unsigned head = first + rest % width;
  const unsigned h_q = (unsigned)f.h_q;
  return {head / h_q, head % h_q, int(row_tiles - 1 - rest / width) * config::tile_rows};
}

__device__ int tile_count(const Forward& f) {
  return int((f.s_q + config::tile_rows - 1) / config::tile_rows * f.b * f.h_q);
}

// The tiles of a block, drawn one after the other from those left; or, where all take equally long,
// every gridDim.x-th.
__device__ int next_tile(int* drawn, int tile) {
  if (drawn == nullptr) return tile + (int)gridDim.x;
  int next = 0;
  if (threadIdx.x % 32 == 0) next = (int)gridDim.x + atomicAdd(drawn, 1);
  return __shfl_sync(0xffffffffu, next, 0);
}

// As find_limits, of one warp for itself.
template <class Row>
__device__ Limits warp_limits(const Call& call, const Head& head, int row0) {
  const int rows = (int)call.forward.s_q, end = (int)call.forward.s_kv;
  if constexpr (!mask_text::has_limits) {
    return {0, end - 1, 0, config::has_mask ? -1 : end - 1};
  } else {
    Limits all{end, -1, 0, mask_text::only_limits ? end - 1 : -1};
#pragma unroll 1
    for (int i = threadIdx.x % 32; i < config::tile_rows && row0 + i < rows; i += 32) {
      const Row row = mask_text::per_row(call.mask, head.mask, row0 + i);
      const int first = higher(row.first, 0), last = lower(row.last, end - 1);
      const bool empty = first > last;
      all.first = empty ? all.first : min(all.first, first);
      all.last = empty ? all.last : max(all.last, last);
      all.full_first = max(all.full_first, empty ? end : first);
      all.full_last = min(all.full_last, last);
    }
    return {__reduce_min_sync(0xffffffffu, all.first), __reduce_max_sync(0xffffffffu, all.last),
            __reduce_max_sync(0xffffffffu, all.full_first),
            __reduce_min_sync(0xffffffffu, all.full_last)};
  }
}

// The tile's blocks of keys, from the last to the first: `count` from block `last` down, of which
// `before` have hidden pairs or may have, then `full` have none, then again some may have.
struct Blocks {
  int last, count, before, full;
};
__device__ Blocks blocks_of(const Limits& limits) {
  constexpr int keys = config::tile_keys;
  if (limits.last < limits.first) return {0, 0, 0, 0};
  const int last = limits.last / keys, first = limits.first / keys, count = last - first + 1;
  // Full are the whole blocks of [full_first, full_last].
  const int full_last = (limits.full_last + 1) / keys - 1;
  const int full_first = (limits.full_first + keys - 1) / keys;
  const int highest = min(full_last, last), lowest = max(full_first, first);
  if (limits.full_last < 0 || highest < lowest) return {last, count, count, 0};
  return {last, count, last - highest, highest - lowest + 1};
}

}  // namespace
