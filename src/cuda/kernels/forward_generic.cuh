// Attention forward for any head dims, strides, mask and score: o = softmax(mask(score(scale q
// k^T))) v, in float32 throughout (FMA units), by the online softmax (Milakov & Gimelshein 2018;
// Dao et al. 2022).
//
// Grid:   blocks stride over the tiles; a tile is 16 queries of one (sequence, query head).
// Block:  128 threads. 8 neighbours, all in one warp, own a query: of 32 keys each computes 4
// logits,
//         of 64 columns of o each holds 8.
// Walk:   32 keys at a time, those between the mask's limits; d and d_v in pieces of 64.
// Shared: sQ, sK, sV, sP, 23 KB.
// Registers: o takes 8 for each 64 of d_v, 72 for 576.
#include "cuda/kernels/forward_call.cuh"

namespace {

constexpr int tile_rows = 16, tile_keys = 32, piece = 64;
constexpr int threads = 128, row_threads = threads / tile_rows;
constexpr int thread_keys = tile_keys / row_threads, thread_columns = piece / row_threads;
constexpr int d_v_pieces = (config::d_v + piece - 1) / piece;

struct Shared {
  float sQ[tile_rows][piece + 1], sK[tile_keys][piece + 1], sV[tile_keys][piece];
  float sP[tile_rows][tile_keys + 1];  // -1 = left out of o: hidden or dropped
  int64 first, last;                   // columns that some row of the tile may see
};

// rows x 64 of a (s, d) matrix from (s0, d0) on; zeros beyond its ends.
template <int rows, int pitch>
__device__ void load(float (&to)[rows][pitch], const Strided& x, const config::Element* from,
                     int64 s0, int64 s_end, int d0, int d_end) {
  for (int i = threadIdx.x; i < rows * piece; i += threads) {
    const int64 s = s0 + i / piece;
    const int d = d0 + i % piece;
    to[i / piece][i % piece] = s < s_end && d < d_end ? element(from[s * x.s + d * x.d]) : 0.0f;
  }
}

// Of the 8 threads of a row.
__device__ float row_max(float x) {
  for (int lane = 1; lane < row_threads; lane *= 2) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, lane));
  }
  return x;
}
__device__ float row_sum(float x) {
  for (int lane = 1; lane < row_threads; lane *= 2) x += __shfl_xor_sync(0xffffffffu, x, lane);
  return x;
}

// The columns that the tile's rows may see, of all threads together.
template <class PerRow>
__device__ void find_limits(Shared& shared, const PerRow& per_row, bool row_exists, int64 s_kv) {
  __syncthreads();
  if (threadIdx.x == 0) {
    shared.first = mask_text::has_limits ? s_kv : 0;
    shared.last = mask_text::has_limits ? -1 : s_kv - 1;
  }
  __syncthreads();
  if constexpr (mask_text::has_limits) {
    if (row_exists && per_row.first <= per_row.last) {
      atomicMin(&shared.first, int64(per_row.first));
      atomicMax(&shared.last, int64(per_row.last));
    }
    __syncthreads();
  }
}

__device__ void attend(const Call& call, Shared& shared, int64 b, int64 h, int64 row0) {
  const Forward& f = call.forward;
  const int own_row = threadIdx.x / row_threads, lane = threadIdx.x % row_threads;
  const int64 row = row0 + own_row, h_kv = h / f.group;
  const auto* const gQ = place<const config::Element>(f.q, b, h);
  const auto* const gK = place<const config::Element>(f.k, b, h_kv);
  const auto* const gV = place<const config::Element>(f.v, b, h_kv);
  const Scope scope = scope_of(f, b, h);
  const mask_text::PerScope mask_scope = mask_text::per_scope(call.mask, scope);
  const mask_text::PerRow mask_row = mask_text::per_row(call.mask, mask_scope, row);
  const score_text::PerScope score_scope = score_text::per_scope(call.score, scope);
  const score_text::PerRow score_row = score_text::per_row(call.score, score_scope, row);
  const DropoutStream stream = dropout_stream(f.seed, f.offset, b, h);

  // The sink is one more term of l, in its first thread; no term at all where it is -inf.
  float m = -infinity();
  if constexpr (config::has_sink) m = ((const float*)f.sink.data)[h * f.sink.h];
  float l = lane == 0 && m != -infinity() ? 1.0f : 0.0f;
  float rO[d_v_pieces > 0 ? d_v_pieces : 1][thread_columns] = {};

  find_limits(shared, mask_row, row < f.s_q, f.s_kv);
  const int64 first = shared.first < 0 ? 0 : shared.first / tile_keys * tile_keys;
  const int64 end = shared.last < f.s_kv ? shared.last + 1 : f.s_kv;
  for (int64 col0 = first; col0 < end; col0 += tile_keys) {
    // rS (4) = sQ (16, d) sK (32, d)^T, the columns lane, lane + 8, ...
    float rS[thread_keys] = {};
    for (int d0 = 0; d0 < config::d; d0 += piece) {
      __syncthreads();
      load(shared.sQ, f.q, gQ, row0, f.s_q, d0, config::d);
      load(shared.sK, f.k, gK, col0, f.s_kv, d0, config::d);
      __syncthreads();
      for (int i = 0; i < piece; ++i) {
        for (int key = 0; key < thread_keys; ++key) {
          rS[key] = fmaf(shared.sQ[own_row][i], shared.sK[lane + row_threads * key][i], rS[key]);
        }
      }
    }
    // Score and mask. A logit of -inf is as good as hidden.
    bool visible[thread_keys];
    float largest = m;
    for (int key = 0; key < thread_keys; ++key) {
      const int64 col = col0 + lane + row_threads * key;
      const score_text::PerKey score_key = score_text::per_key(call.score, score_scope, col);
      rS[key] = score_text::value(call.score, score_scope, score_row, score_key, f.scale * rS[key]);
      const mask_text::PerKey mask_key = mask_text::per_key(call.mask, mask_scope, col);
      visible[key] = row < f.s_q && col < f.s_kv && rS[key] != -infinity() &&
                     mask_text::value(call.mask, mask_scope, mask_row, mask_key);
      if (visible[key]) largest = fmaxf(largest, rS[key]);
    }
    // sP = exp(rS - m); l = l exp(old m - m) + its sum over the visible
    largest = row_max(largest);
    const float rescale = m == largest ? 1.0f : expf(m - largest);
    m = largest;
    l *= rescale;
    __syncwarp();  // the warp has read the sP of the keys before
    for (int key = 0; key < thread_keys; ++key) {
      const int64 col = col0 + lane + row_threads * key;
      const float p = expf(rS[key] - m);
      if (visible[key]) l += p;
      shared.sP[own_row][lane + row_threads * key] =
          visible[key] && kept(f, stream, row, col) ? p : -1.0f;
    }
    // rO (d_v / 8) = rO exp(old m - m) + sP (16, 32) sV (32, d_v), the columns lane, lane + 8, ...
#pragma unroll
    for (int part = 0; part < d_v_pieces; ++part) {
      __syncthreads();
      load(shared.sV, f.v, gV, col0, f.s_kv, part * piece, config::d_v);
      __syncthreads();
#pragma unroll
      for (int column = 0; column < thread_columns; ++column) rO[part][column] *= rescale;
      for (int key = 0; key < tile_keys; ++key) {
        const float p = shared.sP[own_row][key];
        if (p < 0.0f) continue;  // what v holds there must not reach o, NaN included
#pragma unroll
        for (int column = 0; column < thread_columns; ++column) {
          rO[part][column] = fmaf(p, shared.sV[key][lane + row_threads * column], rO[part][column]);
        }
      }
    }
  }

  // o = rO / (l (1 - dropout)), lse = m + ln l; 0 and -inf where nothing is visible
  l = row_sum(l);
  if (row >= f.s_q) return;
  if (config::has_lse && lane == 0) {
    place<float>(f.lse, b, h)[row * f.lse.s] = l == 0.0f ? -infinity() : m + logf(l);
  }
  auto* const gO = place<config::Output>(f.o, b, h) + row * f.o.s;
#pragma unroll
  for (int part = 0; part < d_v_pieces; ++part) {
#pragma unroll
    for (int column = 0; column < thread_columns; ++column) {
      const int d = part * piece + lane + row_threads * column;
      if (d >= config::d_v) continue;
      store(gO + d * f.o.d, l == 0.0f ? 0.0f : rO[part][column] * f.kept_scale / l);
    }
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads, config::d_v > 256 ? 2 : 3)
    forward_generic(const __grid_constant__ Call call) {
  __shared__ Shared shared;
  const Forward& f = call.forward;
  const int64 row_tiles = (f.s_q + tile_rows - 1) / tile_rows;
  for (int64 tile = blockIdx.x; tile < f.b * f.h_q * row_tiles; tile += gridDim.x) {
    const int64 head = tile / row_tiles;
    attend(call, shared, head / f.h_q, head % f.h_q, tile % row_tiles * tile_rows);
  }
}
