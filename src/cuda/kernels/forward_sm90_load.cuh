// The warp that loads: q of a tile, then its keys and values from the last block to the first, k a
// block ahead of v. One lane starts the copies.
#pragma once
#include "cuda/kernels/forward_sm90_tiles.cuh"

namespace {

struct TensorMaps {
  TensorMap q, k, v;
};

// `slabs` of 64 columns of rows from s on.
__device__ void load_slabs(unsigned to, const TensorMap& map, int slabs, int rows, int s, int h,
                           int b, unsigned full) {
  expect_bytes(full, slabs * rows * slab_row_bytes);
#pragma unroll 1
  for (int i = 0; i < slabs; ++i) {
    copy_box(to + i * rows * slab_row_bytes, map, i * slab_width, s, h, b, full);
  }
}

__device__ Work work_of(const Call& call, int tile) {
  if (tile >= tile_count(call.forward)) return {-1, {}};
  const TilePlace place = tile_place(call.forward, tile);
  return {tile, warp_limits<mask_text::PerRow>(call, head_of(call, place.b, place.h), place.row)};
}

// `works`: work_stages of them, in shared memory.
__device__ void load_all(const Call& call, const TensorMaps& maps, int* drawn, const Stages& at,
                         Work* works) {
  constexpr int rows = config::tile_rows, keys = config::tile_keys;
  const bool loads = threadIdx.x % 32 == 0;
  Ring<work_stages> w;
  Ring<config::query_stages> q;
  Ring<config::stages> k, v;
  Work work = work_of(call, blockIdx.x);
#pragma unroll 1
  while (true) {
    if (loads) {
      wait(at.work_empty(w.stage), w.parity ^ 1);
      works[w.stage] = work;
      arrive(at.work_full(w.stage));
    }
    w.next();
    if (work.tile < 0) return;
    const TilePlace tile = tile_place(call.forward, work.tile);
    const int b = (int)tile.b, h = (int)tile.h, h_kv = h / (int)call.forward.group;
    const Blocks blocks = blocks_of(work.limits);
    if (blocks.count > 0) {
      if (loads) {
        wait(at.q_empty(q.stage), q.parity ^ 1);
        load_slabs(at.q(q.stage), maps.q, d_slabs, rows, tile.row, h, b, at.q_full(q.stage));
      }
      q.next();
    }
    const int following = next_tile(drawn, work.tile);
#pragma unroll 1
    for (int i = 0; i <= blocks.count; ++i) {
      const int key = (blocks.last - i) * keys;
      if (i < blocks.count) {
        if (loads) {
          wait(at.k_empty(k.stage), k.parity ^ 1);
          load_slabs(at.k(k.stage), maps.k, d_slabs, keys, key, h_kv, b, at.k_full(k.stage));
        }
        k.next();
      }
      if (i > 0) {
        if (loads) {
          wait(at.v_empty(v.stage), v.parity ^ 1);
          load_slabs(at.v(v.stage), maps.v, d_v_slabs, keys, key + keys, h_kv, b,
                     at.v_full(v.stage));
        }
        v.next();
      }
      if (i == 1 || blocks.count == 0) work = work_of(call, following);
    }
  }
}

}  // namespace
