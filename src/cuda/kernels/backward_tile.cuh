// One tile of pairs of a head by FMA units, in float32:
//   S = Q K^T, dP = dO V^T  ->  P = exp(score(scale S) - lse), dS = P (dP - delta) dscore/ds
//
// Block:  256 threads, 16 x 16. Thread (y, x) owns the rows y * thread_rows + i and the keys
//         x + 16 j of the tile; of a product into rows (keys) y * n + i, the columns 4 x .. 4 x + 3
//         of each 64.
// Shared: 64 columns of Q or dO (sA) and of K or V (sB), P and dS; 45 KB at most.
#include "cuda/kernels/backward_call.cuh"

namespace {

constexpr int piece = 64, pitch = piece + 4;
constexpr int threads = 256, side = 16;
constexpr int tile_rows = config::tile_rows, tile_keys = config::tile_keys;
constexpr int thread_rows = tile_rows / side, thread_keys = tile_keys / side;
constexpr int d_pieces = (config::d + piece - 1) / piece;
constexpr int d_v_pieces = (config::d_v + piece - 1) / piece;
// Whether a pair may be left out of a product whose tile it is in.
constexpr bool leaves_out = config::has_mask || config::has_score || config::has_dropout;

enum LeftOut : unsigned char { hidden = 1, dropped = 2 };

struct alignas(16) Shared {
  float sA[tile_rows][pitch], sB[tile_keys][pitch];
  float sP[tile_rows][tile_keys + 1], sDS[tile_rows][tile_keys + 1];
  unsigned char left_out[tile_rows][tile_keys];  // where the tile is isolated
};

// Of each pair of a thread.
struct Pairs {
  float logit[thread_rows][thread_keys];     // scaled
  float score_ds[thread_rows][thread_keys];  // P (dP - delta), 0 where hidden
};

// rows x 64 of a (s, d) matrix from (s0, d0) on; zeros beyond its ends. Whether all are finite.
template <int rows, class T>
__device__ bool load(float (&to)[rows][pitch], const Strided& x, const T* from, int64 s0,
                     int64 s_end, int d0, int d_end) {
  bool finite = true;
  for (int i = threadIdx.x; i < rows * piece; i += threads) {
    const int64 s = s0 + i / piece;
    const int d = d0 + i % piece;
    const float loaded = s < s_end && d < d_end ? element(from[s * x.s + d * x.d]) : 0.0f;
    finite = finite && loaded - loaded == 0.0f;
    to[i / piece][i % piece] = loaded;
  }
  return finite;
}

// sum += sA sB^T over the first `width` columns
__device__ void multiply(const Shared& shared, int width, float (&sum)[thread_rows][thread_keys]) {
  const int y = threadIdx.x / side, x = threadIdx.x % side;
  for (int c = 0; c < width; c += 4) {
    float4 a[thread_rows], b[thread_keys];
#pragma unroll
    for (int i = 0; i < thread_rows; ++i) a[i] = *(const float4*)&shared.sA[y * thread_rows + i][c];
#pragma unroll
    for (int j = 0; j < thread_keys; ++j) b[j] = *(const float4*)&shared.sB[x + side * j][c];
#pragma unroll
    for (int i = 0; i < thread_rows; ++i) {
#pragma unroll
      for (int j = 0; j < thread_keys; ++j) {
        sum[i][j] = fmaf(a[i].x, b[j].x, sum[i][j]);
        sum[i][j] = fmaf(a[i].y, b[j].y, sum[i][j]);
        sum[i][j] = fmaf(a[i].z, b[j].z, sum[i][j]);
        sum[i][j] = fmaf(a[i].w, b[j].w, sum[i][j]);
      }
    }
  }
}

__device__ int width_from(int d0, int d_end) { return d_end - d0 < piece ? d_end - d0 : piece; }

// sum += A (rows, width) B (keys, width)^T of the tile at (row0, col0), `width` in pieces through
// sA and sB. Whether all of both are finite.
template <int width, class A, class B>
__device__ bool add_product(const Backward& f, Shared& shared, const Strided& a, const A* gA,
                            int64 row0, const Strided& b, const B* gB, int64 col0,
                            float (&sum)[thread_rows][thread_keys]) {
  bool finite = true;
  for (int d0 = 0; d0 < width; d0 += piece) {
    __syncthreads();
    finite &= load(shared.sA, a, gA, row0, f.s_q, d0, width);
    finite &= load(shared.sB, b, gB, col0, f.s_kv, d0, width);
    __syncthreads();
    multiply(shared, width_from(d0, width), sum);
  }
  return finite;
}

// Bit i * thread_keys + j: the mask shows the pair.
__device__ unsigned visible_pairs(const Call& call, const Head& head, int64 row0, int64 col0) {
  const Backward& f = call.backward;
  unsigned visible = 0;
  for (int i = 0; i < thread_rows; ++i) {
    const int64 row = row0 + threadIdx.x / side * thread_rows + i;
    const mask_text::PerRow mask_row = mask_text::per_row(call.mask, head.mask, row);
    for (int j = 0; j < thread_keys; ++j) {
      const int64 col = col0 + threadIdx.x % side + side * j;
      bool sees = row < f.s_q && col < f.s_kv;
      if constexpr (config::has_mask) {
        const mask_text::PerKey mask_key = mask_text::per_key(call.mask, head.mask, col);
        sees = sees && mask_text::value(call.mask, head.mask, mask_row, mask_key);
      }
      visible |= unsigned(sees) << (i * thread_keys + j);
    }
  }
  return visible;
}

// Whether a tile has to be taken: not after a tensor-core kernel that finished it. `flags` are of
// tiles of `size`.
__device__ bool wanted(const unsigned char* flags, int size, int64 head, int64 s, int64 at) {
  if (size == 0) return true;
  return flags[head * ((s + size - 1) / size) + at / size] != 0;
}

// Fills sP and sDS, less what dropout dropped. Hidden pairs are selected away: nothing of theirs is
// multiplied by 0. Exponents stay at or below 0 where a large lse was rounded down.
__device__ void weigh(const Call& call, const Head& head, Shared& shared, int64 row0, int64 col0,
                      unsigned visible, bool isolate, const float (&rDP)[thread_rows][thread_keys],
                      Pairs& pairs) {
  const Backward& f = call.backward;
#pragma unroll
  for (int i = 0; i < thread_rows; ++i) {
    const int r = threadIdx.x / side * thread_rows + i;
    const int64 row = row0 + r;
    const float lse = row < f.s_q ? head.lse[row] : infinity();
    const float delta = row < f.s_q ? head.delta[row] : 0.0f;
    const auto score_row = score_text::per_row(call.score, head.score, row);
    const auto slope_row = slope_text::per_row(call.slope, head.slope, row);
#pragma unroll
    for (int j = 0; j < thread_keys; ++j) {
      const int c = threadIdx.x % side + side * j;
      const int64 col = col0 + c;
      const float logit = pairs.logit[i][j];
      float score = logit, slope = 1.0f;
      if constexpr (config::has_score) {
        const auto score_key = score_text::per_key(call.score, head.score, col);
        const auto slope_key = slope_text::per_key(call.slope, head.slope, col);
        score = score_text::value(call.score, head.score, score_row, score_key, logit);
        slope = slope_text::value(call.slope, head.slope, slope_row, slope_key, logit);
      }
      const bool sees = (visible >> (i * thread_keys + j) & 1) != 0 && score != -infinity();
      const bool keeps = kept(f, head.dropout, row, col);
      const float exponent = score - lse;
      const float weight = expf(exponent > 0.0f ? 0.0f : exponent);
      const float p = sees ? weight : 0.0f;
      const float dp = keeps ? rDP[i][j] * f.kept_scale : 0.0f;
      const float ds = sees ? p * (dp - delta) : 0.0f;
      pairs.score_ds[i][j] = ds;
      shared.sP[r][c] = keeps ? p : 0.0f;
      shared.sDS[r][c] = ds == 0.0f ? 0.0f : ds * slope;
      if (leaves_out && isolate) {
        shared.left_out[r][c] = (sees ? 0 : hidden) | (keeps ? 0 : dropped);
      }
    }
  }
}

// The tile at (row0, col0): false if the mask hides all of it, which leaves sP and sDS as they
// were. `isolate`: some input is not finite, so products must leave out the pairs that take no
// part. All threads of the block together; sP and sDS are whole after the caller's next barrier.
__device__ bool step(const Call& call, const Head& head, Shared& shared, int64 row0, int64 col0,
                     bool& isolate, Pairs& pairs) {
  const Backward& f = call.backward;
  const unsigned visible = visible_pairs(call, head, row0, col0);
  if (config::has_mask && !__syncthreads_or(visible != 0)) return false;
  const auto* const gQ = place<const config::Element>(f.q, head.b, head.h);
  const auto* const gK = place<const config::Element>(f.k, head.b, head.h_kv);
  const auto* const gV = place<const config::Element>(f.v, head.b, head.h_kv);
  const auto* const gDO = place<const config::DOutput>(f.dout, head.b, head.h);
  bool finite = true;
  // logit = scale sQ (rows, d) sK (keys, d)^T
  float rS[thread_rows][thread_keys] = {};
  finite &= add_product<config::d>(f, shared, f.q, gQ, row0, f.k, gK, col0, rS);
  // rDP = sDO (rows, d_v) sV (keys, d_v)^T
  float rDP[thread_rows][thread_keys] = {};
  finite &= add_product<config::d_v>(f, shared, f.dout, gDO, row0, f.v, gV, col0, rDP);
#pragma unroll
  for (int i = 0; i < thread_rows; ++i) {
#pragma unroll
    for (int j = 0; j < thread_keys; ++j) pairs.logit[i][j] = f.scale * rS[i][j];
  }
  isolate = leaves_out && __syncthreads_or(!finite);
  weigh(call, head, shared, row0, col0, visible, isolate, rDP, pairs);
  return true;
}

// A row of (s, d) that a thread sums: its columns of each 64, as `count` rows of the tile.
template <int pieces, int count>
struct Sums {
  float value[pieces > 0 ? pieces : 1][count][4] = {};

  template <class T>
  __device__ void store_rows(const Strided& to, int64 b, int64 h, int64 s0, int64 s_end, int d_end,
                             float factor) const {
    T* const g = place<T>(to, b, h);
#pragma unroll
    for (int part = 0; part < pieces; ++part) {
#pragma unroll
      for (int i = 0; i < count; ++i) {
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          const int64 s = s0 + threadIdx.x / side * count + i;
          const int d = part * piece + threadIdx.x % side * 4 + c;
          if (s < s_end && d < d_end) store(g + s * to.s + d * to.d, factor * value[part][i][c]);
        }
      }
    }
  }
};

__device__ void add(float (&sum)[4], float factor, float4 x) {
  sum[0] = fmaf(factor, x.x, sum[0]);
  sum[1] = fmaf(factor, x.y, sum[1]);
  sum[2] = fmaf(factor, x.z, sum[2]);
  sum[3] = fmaf(factor, x.w, sum[3]);
}

}  // namespace
