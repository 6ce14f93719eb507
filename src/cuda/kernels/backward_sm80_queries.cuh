// dQ = scale dS K by mma.sync (cuda.backward.sm80).
//
// Grid:   config::parts blocks a tile of 128 rows of one (sequence, query head); each sums its part
// of
//         the columns, where the registers do not hold all.
// Block:  4 warps of 32 rows. Of 32 keys at a time a warp takes S = Q K^T and dP = dO V^T to dS, in
//         registers, and adds dS K to its rows of dQ.
// Walk:   the keys between the limits of the rows.
// Shared: Q, dO; two stages of K and V.
// Registers: dQ takes d, S and dP 64; up to 64 columns also Q and dO stay there, with 64.
#include "cuda/kernels/backward_sm80.cuh"

namespace {

constexpr int threads = 128, tile_rows = 128, tile_keys = 32, parts = config::parts;
constexpr int width = rounded_up(config::d, 16 * parts), width_v = rounded_up(config::d_v, 16);
constexpr int columns = width / parts;
// Q and dO stay in registers.
constexpr bool keeps = width + width_v <= 128 && !config::has_dropout && !config::has_score;

using TileQ = SharedTile<tile_rows, width>;
using TileDO = SharedTile<tile_rows, width_v>;
using TileK = SharedTile<tile_keys, width>;
using TileV = SharedTile<tile_keys, width_v>;

struct alignas(128) Stage {
  unsigned char k[TileK::bytes], v[TileV::bytes];
};
struct alignas(128) Shared {
  unsigned char q[TileQ::bytes], dout[TileDO::bytes];
  Stage stages[2];
  int first, last;          // columns that some row may see
  int all_first, all_last;  // columns that all rows see
};
static_assert(sizeof(Shared) == config::shared_bytes);

template <class Limits = mask_text::PerRow>
__device__ void find_limits(const Call& call, const Head& head, Shared& shared, int row0) {
  const Backward& f = call.backward;
  const int s_kv = int(f.s_kv);
  if (threadIdx.x == 0) {
    shared.first = mask_text::has_limits ? s_kv : 0;
    shared.last = mask_text::has_limits ? -1 : s_kv - 1;
    const bool all = mask_text::has_limits ? mask_text::only_limits : !config::has_mask;
    shared.all_first = all ? 0 : s_kv;
    shared.all_last = all ? s_kv - 1 : -1;
  }
  if constexpr (mask_text::has_limits) {
    __syncthreads();
    const int row = row0 + int(threadIdx.x);
    if (row < f.s_q) {
      const Limits limits = mask_text::per_row(call.mask, head.mask, row);
      if (limits.first <= limits.last) {
        atomicMin(&shared.first, limits.first);
        atomicMax(&shared.last, limits.last);
      }
      atomicMax(&shared.all_first, limits.first);
      atomicMin(&shared.all_last, limits.last);
    }
  }
  __syncthreads();
}

__device__ void load_stage(const Call& call, const Head& head, Stage& stage, int col0) {
  const Backward& f = call.backward;
  const auto* const gK = place<const config::Element>(f.k, head.b, head.h_kv);
  const auto* const gV = place<const config::Element>(f.v, head.b, head.h_kv);
  TileK::template load<threads, config::d>(shared_address(stage.k), gK, f.k.s, col0, int(f.s_kv));
  TileV::template load<threads, config::d_v>(shared_address(stage.v), gV, f.v.s, col0, int(f.s_kv));
}

// The warp's 32 rows of Q or dO as A.
template <class Tile, int steps>
struct Rows {
  Reader<Tile> reader;
  int row;
  unsigned kept[keeps ? steps : 1][2][4];

  __device__ Rows(const unsigned char* tile)
      : reader(rows_first<Tile>(shared_address(tile), lane_id())), row(threadIdx.x / 32 * 32) {}
  __device__ void keep() {
    if constexpr (keeps) {
#pragma unroll
      for (int k = 0; k < steps; ++k) load(k, kept[k]);
    }
  }
  __device__ void load(int k, unsigned (&a)[2][4]) const {
    load_matrices(a[0], reader.address(row, k));
    load_matrices(a[1], reader.address(row + 16, k));
  }
  __device__ void take(int k, unsigned (&a)[2][4]) const {
    if constexpr (keeps) {
      for (int i = 0; i < 8; ++i) a[i / 4][i % 4] = kept[k][i / 4][i % 4];
    } else {
      load(k, a);
    }
  }
};

// sums (32 rows, 32 keys) = rows (32, width) B (32 keys, width)^T
template <int steps, class TileA, class TileB>
__device__ void products(Fragments& sums, const Rows<TileA, steps>& rows,
                         const Reader<TileB>& keys) {
#pragma unroll(keeps ? steps : config::has_score ? 1 : config::has_dropout ? 2 : 4)
  for (int k = 0; k < steps; ++k) {
    unsigned a[2][4];
    rows.take(k, a);
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      unsigned b[4];
      load_matrices(b, keys.address(16 * n, k));
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        multiply(config::Element{}, sums[m][2 * n], a[m], b[0], b[1]);
        multiply(config::Element{}, sums[m][2 * n + 1], a[m], b[2], b[3]);
      }
    }
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads, 2)
    backward_sm80_queries(const __grid_constant__ Call call) {
  extern __shared__ unsigned char memory[];
  Shared& shared = *(Shared*)memory;
  const Backward& f = call.backward;
  const int64 tiles = (f.s_q + tile_rows - 1) / tile_rows;
  const Place at = place_of(blockIdx.x / parts, f.b * f.h_q, tiles, f.section_heads * f.group);
  // The last rows first: under a causal mask they see more keys.
  const int64 tile = tiles - 1 - at.tile;
  const Head head = head_of(call, at.head / f.h_q, at.head % f.h_q);
  const int row0 = int(tile) * tile_rows, warp_row0 = row0 + int(threadIdx.x) / 32 * 32;

  TileQ::load<threads, config::d>(shared_address(shared.q),
                                  place<const config::Element>(f.q, head.b, head.h), f.q.s, row0,
                                  int(f.s_q));
  TileDO::load<threads, config::d_v>(shared_address(shared.dout),
                                     place<const config::Element>(f.dout, head.b, head.h), f.dout.s,
                                     row0, int(f.s_q));
  commit_copies();
  find_limits(call, head, shared, row0);
  const int first = shared.first < 0 ? 0 : shared.first / tile_keys * tile_keys;
  const int end = shared.last < f.s_kv ? shared.last + 1 : int(f.s_kv);
  const int all_first = shared.all_first, all_last = shared.all_last;

  // lse and delta of rows long_of(m, 2 j)
  float lse2[2][2], delta[2][2];
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int row = warp_row0 + long_of(m, 2 * j);
      lse2[m][j] = log2_e * head.lse[row], delta[m][j] = head.delta[row];
    }
  }
  Rows<TileQ, width / 16> rQ(shared.q);
  Rows<TileDO, width_v / 16> rDO(shared.dout);
  float rDQ[2][columns / 8][4] = {};
  const int part = blockIdx.x % parts;

  if (first < end) load_stage(call, head, shared.stages[0], first);
  commit_copies();
  wait_copies<1>();
  __syncthreads();
  rQ.keep(), rDO.keep();
  for (int col0 = first, i = 0; col0 < end; col0 += tile_keys, ++i) {
    wait_copies<0>();
    __syncthreads();  // this stage is there, and nobody reads the other one
    if (col0 + tile_keys < end) {
      load_stage(call, head, shared.stages[(i + 1) % 2], col0 + tile_keys);
    }
    commit_copies();
    const Stage& stage = shared.stages[i % 2];
    const int last = col0 + tile_keys < f.s_kv ? col0 + tile_keys - 1 : int(f.s_kv) - 1;
    const bool partly = config::has_mask && !(all_first <= col0 && last <= all_last);
    const unsigned visible =
        partly ? visible_pairs<false>(call, head, warp_row0, col0) : every_pair;
    if (hidden(visible)) continue;
    const unsigned kept =
        config::has_dropout ? kept_pairs<false>(f, head, warp_row0, col0) : every_pair;
    Fragments rS = {}, rDP = {};
    products(rS, rQ, halves_first<TileK>(shared_address(stage.k), lane_id()));
    products(rDP, rDO, halves_first<TileV>(shared_address(stage.v), lane_id()));
    const auto lse2_of = [&](int m, int, int e) { return lse2[m][e / 2]; };
    const auto delta_of = [&](int m, int, int e) { return delta[m][e / 2]; };
    if (whole(visible)) {
      weigh<false>(call, head, warp_row0, col0, every_pair, kept, lse2_of, delta_of, rS, rDP);
    } else {
      weigh<false>(call, head, warp_row0, col0, visible, kept, lse2_of, delta_of, rS, rDP);
    }
    unsigned ds[2][2][4];
    to_operand(rDP, ds);
    const auto rK = rows_first<TileK>(shared_address(stage.k), lane_id());
#pragma unroll
    for (int k = 0; k < 2; ++k)
      add_product<columns>(rDQ, ds[0][k], ds[1][k], rK, 16 * k, part * columns / 16);
  }
  wait_copies<0>();

  if (leaves_out) {
    const bool any = __syncthreads_or(!finite<columns>(rDQ));
    if (any && threadIdx.x == 0) f.again_rows[at.head * tiles + tile] = *f.again = 1;
  }
  store_sums<columns, config::DQuery>(f.dq, head.b, head.h, warp_row0, int(f.s_q), part * columns,
                                      config::d, f.scale, rDQ);
}
