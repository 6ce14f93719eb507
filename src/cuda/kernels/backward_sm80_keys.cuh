// dV = 1/(1-p) P^T dO and dK = scale dS^T Q by mma.sync (cuda.backward.sm80).
//
// Grid:   config::parts blocks a tile of 32 * config::groups keys of one (sequence, key/value
// head);
//         each sums its part of the columns, where the registers do not hold all.
// Block:  a group of config::halves warps owns 32 keys. Of 64 queries at a time each of its warps
//         takes 32 (one warp takes both 32 after each other) from S^T = K Q^T and dP^T = V dO^T to
//         P^T and dS^T, in registers; a group of two exchanges these in shared memory. Then each
//         adds its share of the columns of dV and dK.
// Walk:   the group's query heads, their tiles of 64 rows that may see one of the keys.
// Shared: K, V; two stages of Q, dO and their rows' lse and delta; the exchanged.
// Registers: dK and dV take (d + d_v) / halves, S^T and dP^T 64.
#include "cuda/kernels/backward_sm80.cuh"

namespace {

constexpr int halves = config::halves, groups = config::groups, parts = config::parts;
constexpr int threads = 32 * halves * groups, tile_keys = 32 * groups, tile_rows = 64;
constexpr int width = rounded_up(config::d, 16 * halves * parts);
constexpr int width_v = rounded_up(config::d_v, 16 * halves * parts);
constexpr int columns = width / halves / parts, columns_v = width_v / halves / parts;

using TileK = SharedTile<tile_keys, width>;
using TileV = SharedTile<tile_keys, width_v>;
using TileQ = SharedTile<tile_rows, width>;
using TileDO = SharedTile<tile_rows, width_v>;

struct alignas(128) Stage {
  unsigned char q[TileQ::bytes], dout[TileDO::bytes];
  float lse[tile_rows], delta[tile_rows];
};
struct alignas(128) Shared {
  unsigned char k[TileK::bytes], v[TileV::bytes];
  Stage stages[2];
  uint4 exchanged[halves > 1 ? threads / 32 : 1][8][32];
};
static_assert(sizeof(Shared) == config::shared_bytes);

__device__ void load_stage(const Call& call, const Head& head, Stage& stage, int tile) {
  const Backward& f = call.backward;
  const auto* const gQ = place<const config::Element>(f.q, head.b, head.h);
  const auto* const gDO = place<const config::Element>(f.dout, head.b, head.h);
  const int row0 = tile * tile_rows;
  TileQ::template load<threads, config::d>(shared_address(stage.q), gQ, f.q.s, row0, int(f.s_q));
  TileDO::template load<threads, config::d_v>(shared_address(stage.dout), gDO, f.dout.s, row0,
                                              int(f.s_q));
  // Statistics are given to whole tiles of rows.
  constexpr int copies = tile_rows / 4;
  if (threadIdx.x < 2 * copies) {
    const int at = threadIdx.x % copies * 4;
    const bool of_lse = threadIdx.x < copies;
    copy_async(shared_address((of_lse ? stage.lse : stage.delta) + at),
               (of_lse ? head.lse : head.delta) + row0 + at, 16);
  }
}

// A warp's place and its sums.
struct Warp {
  int group, half;
  int share;  // which of the halves * parts shares of the columns it sums
  Reader<TileK> k;
  Reader<TileV> v;
  float rDK[2][columns / 8][4] = {}, rDV[2][columns_v / 8][4] = {};

  __device__ explicit Warp(const Shared& shared)
      : group(threadIdx.x / 32 / halves),
        half(threadIdx.x / 32 % halves),
        share(blockIdx.x % parts * halves + half),
        k(rows_first<TileK>(shared_address(shared.k), lane_id())),
        v(rows_first<TileV>(shared_address(shared.v), lane_id())) {}
};

// sums (32 keys, 32 rows) = own keys of A (keys, width) B (rows, width)^T, rows from `row` on
template <int steps, class TileA, class TileB>
__device__ void products(Fragments& sums, const Reader<TileA>& a_reader, int key,
                         const Reader<TileB>& b_reader, int row) {
#pragma unroll(config::has_score ? 1 : 2)
  for (int k = 0; k < steps; ++k) {
    unsigned a[2][4];
    load_matrices(a[0], a_reader.address(key, k));
    load_matrices(a[1], a_reader.address(key + 16, k));
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      unsigned b[4];
      load_matrices(b, b_reader.address(row + 16 * n, k));
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        multiply(config::Element{}, sums[m][2 * n], a[m], b[0], b[1]);
        multiply(config::Element{}, sums[m][2 * n + 1], a[m], b[2], b[3]);
      }
    }
  }
}

// P^T and dS^T of the warp's keys and 32 rows, as A of the products with dO and Q.
__device__ void weights(const Call& call, const Head& head, const Stage& stage, const Warp& warp,
                        int tile, int chunk, int col0, bool partly, unsigned (&p)[2][2][4],
                        unsigned (&ds)[2][2][4]) {
  const Backward& f = call.backward;
  const int row0 = tile * tile_rows + 32 * chunk, key0 = col0 + 32 * warp.group;
  const unsigned visible =
      config::has_mask && partly ? visible_pairs<true>(call, head, row0, key0) : every_pair;
  const unsigned kept = config::has_dropout ? kept_pairs<true>(f, head, row0, key0) : every_pair;
  Fragments rS = {}, rDP = {};
  if (hidden(visible)) {
    to_operand(rS, p), to_operand(rDP, ds);
    return;
  }
  products<width / 16>(rS, warp.k, 32 * warp.group,
                       halves_first<TileQ>(shared_address(stage.q), lane_id()), 32 * chunk);
  products<width_v / 16>(rDP, warp.v, 32 * warp.group,
                         halves_first<TileDO>(shared_address(stage.dout), lane_id()), 32 * chunk);
  const auto lse2_of = [&](int, int n, int e) {
    return log2_e * stage.lse[32 * chunk + short_of(n, e)];
  };
  const auto delta_of = [&](int, int n, int e) { return stage.delta[32 * chunk + short_of(n, e)]; };
  if (whole(visible)) {
    weigh<true>(call, head, row0, key0, every_pair, kept, lse2_of, delta_of, rS, rDP);
  } else {
    weigh<true>(call, head, row0, key0, visible, kept, lse2_of, delta_of, rS, rDP);
  }
  to_operand(rS, p), to_operand(rDP, ds);
}

__device__ void add_chunk(const Stage& stage, Warp& warp, int chunk, const unsigned (&p)[2][2][4],
                          const unsigned (&ds)[2][2][4]) {
  const auto rQ = rows_first<TileQ>(shared_address(stage.q), lane_id());
  const auto rDO = rows_first<TileDO>(shared_address(stage.dout), lane_id());
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    const int row = 32 * chunk + 16 * k;
    add_product<columns_v>(warp.rDV, p[0][k], p[1][k], rDO, row, warp.share * columns_v / 16);
    add_product<columns>(warp.rDK, ds[0][k], ds[1][k], rQ, row, warp.share * columns / 16);
  }
}

__device__ void give(uint4 (&to)[8][32], const unsigned (&p)[2][2][4],
                     const unsigned (&ds)[2][2][4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const unsigned *x = p[i / 2][i % 2], *y = ds[i / 2][i % 2];
    to[i][lane_id()] = make_uint4(x[0], x[1], x[2], x[3]);
    to[i + 4][lane_id()] = make_uint4(y[0], y[1], y[2], y[3]);
  }
}

__device__ void take(const uint4 (&from)[8][32], unsigned (&p)[2][2][4], unsigned (&ds)[2][2][4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const uint4 x = from[i][lane_id()], y = from[i + 4][lane_id()];
    unsigned *to_p = p[i / 2][i % 2], *to_ds = ds[i / 2][i % 2];
    to_p[0] = x.x, to_p[1] = x.y, to_p[2] = x.z, to_p[3] = x.w;
    to_ds[0] = y.x, to_ds[1] = y.y, to_ds[2] = y.z, to_ds[3] = y.w;
  }
}

__device__ void step(const Call& call, const Head& head, Shared& shared, const Stage& stage,
                     Warp& warp, int tile, int col0, bool partly) {
  unsigned p[2][2][4], ds[2][2][4];
  if constexpr (halves == 1) {
#pragma unroll 1
    for (int chunk = 0; chunk < 2; ++chunk) {
      weights(call, head, stage, warp, tile, chunk, col0, partly, p, ds);
      add_chunk(stage, warp, chunk, p, ds);
    }
  } else {
    weights(call, head, stage, warp, tile, warp.half, col0, partly, p, ds);
    const int id = threadIdx.x / 32;
    give(shared.exchanged[id], p, ds);
    asm volatile("bar.sync %0, 64;" ::"r"(1 + warp.group) : "memory");
    add_chunk(stage, warp, warp.half, p, ds);
    take(shared.exchanged[id ^ 1], p, ds);
    add_chunk(stage, warp, 1 - warp.half, p, ds);
  }
}

// The tiles of rows of a head that see a key of the block's, one after the other. Without limits
// all do; with them a warp looks at 32 tiles at a time, of which a lane has one.
template <bool has_limits = mask_text::has_limits, class Limits = mask_text::PerRow>
struct Walk {
  int tiles, col0, tile0 = 0, at = -1;  // at: of the 32 tiles from tile0 on
  unsigned seen = 0, full = 0;          // a bit a tile: see a key, see all keys

  __device__ Walk(const Call& call, const Head& head, int col)
      : tiles(int((call.backward.s_q + tile_rows - 1) / tile_rows)), col0(col) {
    look(call, head);
    next(call, head);
  }
  __device__ bool done() const { return tile0 >= tiles; }
  __device__ int tile() const { return tile0 + at; }
  __device__ bool partly() const { return (full >> at & 1) == 0; }
  __device__ void next(const Call& call, const Head& head) {
    unsigned left = at < 31 ? seen >> (at + 1) : 0;
    while (left == 0) {
      tile0 += 32, at = -1;
      if (done()) return;
      look(call, head);
      left = seen;
    }
    at += __ffs(int(left));
  }

 private:
  __device__ void look(const Call& call, const Head& head) {
    const Backward& f = call.backward;
    const int end = col0 + tile_keys < f.s_kv ? col0 + tile_keys : int(f.s_kv);
    const int first = (tile0 + lane_id()) * tile_rows;
    bool any = false, all = mask_text::only_limits;
    for (int row = first; row < first + tile_rows && row < f.s_q; ++row) {
      const Limits limits = mask_text::per_row(call.mask, head.mask, row);
      any = any || (limits.first < end && limits.last >= col0 && limits.first <= limits.last);
      all = all && limits.first <= col0 && limits.last >= end - 1;
    }
    seen = __ballot_sync(0xffffffffu, any), full = __ballot_sync(0xffffffffu, all);
  }
};
template <class Limits>
struct Walk<false, Limits> {
  int tiles, at = 0;
  __device__ Walk(const Call& call, const Head&, int)
      : tiles(int((call.backward.s_q + tile_rows - 1) / tile_rows)) {}
  __device__ bool done() const { return at >= tiles; }
  __device__ int tile() const { return at; }
  __device__ bool partly() const { return config::has_mask; }
  __device__ void next(const Call&, const Head&) { ++at; }
};

// The rows of one query head.
__device__ void take_head(const Call& call, const Head& head, Shared& shared, Warp& warp,
                          int col0) {
  Walk<> walk(call, head, col0);
  __syncthreads();  // nobody reads a stage
  if (!walk.done()) load_stage(call, head, shared.stages[0], walk.tile());
  commit_copies();
  for (int i = 0; !walk.done(); ++i) {
    const int tile = walk.tile();
    const bool partly = walk.partly();
    walk.next(call, head);
    wait_copies<0>();
    __syncthreads();  // this stage is there, and nobody reads the other one
    if (!walk.done()) load_stage(call, head, shared.stages[(i + 1) % 2], walk.tile());
    commit_copies();
    step(call, head, shared, shared.stages[i % 2], warp, tile, col0, partly);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads, threads < 256 ? 2 : 1)
    backward_sm80_keys(const __grid_constant__ Call call) {
  extern __shared__ unsigned char memory[];
  Shared& shared = *(Shared*)memory;
  const Backward& f = call.backward;
  const int64 tiles = (f.s_kv + tile_keys - 1) / tile_keys, kv_heads = f.h_q / f.group;
  const Place at = place_of(blockIdx.x / parts, f.b * kv_heads, tiles, f.section_heads);
  const int64 b = at.head / kv_heads, h_kv = at.head % kv_heads;
  const int col0 = int(at.tile) * tile_keys;
  TileK::load<threads, config::d>(shared_address(shared.k),
                                  place<const config::Element>(f.k, b, h_kv), f.k.s, col0,
                                  int(f.s_kv));
  TileV::load<threads, config::d_v>(shared_address(shared.v),
                                    place<const config::Element>(f.v, b, h_kv), f.v.s, col0,
                                    int(f.s_kv));
  commit_copies();
  Warp warp(shared);
  for (int64 h = h_kv * f.group; h < (h_kv + 1) * f.group; ++h) {
    take_head(call, head_of(call, b, h), shared, warp, col0);
  }
  wait_copies<0>();

  if (leaves_out) {
    const bool infinite = !finite<columns>(warp.rDK) || !finite<columns_v>(warp.rDV);
    const bool any = __syncthreads_or(infinite);
    if (any && threadIdx.x == 0) f.again_keys[at.head * tiles + at.tile] = *f.again = 1;
  }
  const int key0 = col0 + 32 * warp.group, s_kv = int(f.s_kv);
  if (f.dk.data) {
    store_sums<columns, config::DKey>(f.dk, b, h_kv, key0, s_kv, warp.share * columns, config::d,
                                      f.scale, warp.rDK);
  }
  if (f.dv.data) {
    store_sums<columns_v, config::DValue>(f.dv, b, h_kv, key0, s_kv, warp.share * columns_v,
                                          config::d_v, f.kept_scale, warp.rDV);
  }
}
