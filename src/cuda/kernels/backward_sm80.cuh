// What both tensor-core kernels of the backward (sm_80 and newer, 16-bit inputs) share: a warp's
// 32 x 32 pairs of a head, in C fragments [m][n][e] of mma.m16n8k16, from products to weights:
//   P = exp2(log2e (score(scale S) - lse)), dS = P (dP - delta) dscore/ds
//
// In lane 4 g + t, fragment [m][n][2 j + i] is long 16 m + 8 j + g, short 8 n + 2 t + i. Where the
// kernel owns keys the long side is keys and the short side rows; else the other way round.
#pragma once
#include "cuda/kernels/backward_call.cuh"
#include "cuda/kernels/shared_tile.cuh"

namespace {

constexpr float log2_e = 1.4426950408889634f;
// Whether a pair may be left out of a product whose tile it is in.
constexpr bool leaves_out = config::has_mask || config::has_score || config::has_dropout;

constexpr int rounded_up(int x, int to) { return (x + to - 1) / to * to; }

using Fragments = float[2][4][4];

// Bits m * 16 + n * 4 + e.
constexpr unsigned every_pair = 0xffffffffu;
__device__ constexpr unsigned bit(int m, int n, int e) { return 1u << (m * 16 + n * 4 + e); }

__device__ int lane_id() { return threadIdx.x % 32; }
__device__ int long_of(int m, int e) { return 16 * m + 8 * (e / 2) + lane_id() / 4; }
__device__ int short_of(int n, int e) { return 8 * n + 2 * (lane_id() % 4) + e % 2; }

// The row, or the key, of a fragment.
template <bool own_keys>
__device__ int row_of(int m, int n, int e) {
  return own_keys ? short_of(n, e) : long_of(m, e);
}
template <bool own_keys>
__device__ int key_of(int m, int n, int e) {
  return own_keys ? long_of(m, e) : short_of(n, e);
}

// What the mask shows of the pairs from (row0, col0) on.
template <bool own_keys>
__device__ unsigned visible_pairs(const Call& call, const Head& head, int row0, int col0) {
  using Row = mask_text::PerRow;
  using Key = mask_text::PerKey;
  unsigned visible = 0;
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int n = 0; n < 4; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const Row row = mask_text::per_row(call.mask, head.mask, row0 + row_of<own_keys>(m, n, e));
        const Key key = mask_text::per_key(call.mask, head.mask, col0 + key_of<own_keys>(m, n, e));
        if (mask_text::value(call.mask, head.mask, row, key)) visible |= bit(m, n, e);
      }
    }
  }
  return visible;
}

// What dropout keeps of them; row0 and col0 are multiples of 32. Four pairs share their words.
template <bool own_keys>
__device__ unsigned kept_pairs(const Backward& f, const Head& head, int64 row0, int64 col0) {
  unsigned kept = 0;
  row0 += f.row0, col0 += f.col0;
  // Of bits (m, n, ...) the place is no constant: unrolled, the rounds would take registers from
  // the sums.
#pragma unroll 1
  for (int at = 0; at < 4; ++at) {
    const int m = at / 2, n = at % 2 * 2;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const PhiloxWords words = dropout_words(head.dropout, row0 + row_of<own_keys>(m, n, i),
                                              col0 + key_of<own_keys>(m, n, i));
      // Words go by 2 * (row is the second of its 16) + (key is).
      const unsigned second_long = own_keys ? words.word[1] : words.word[2];
      const unsigned second_short = own_keys ? words.word[2] : words.word[1];
      if (words.word[0] >= f.threshold) kept |= bit(m, n, i);
      if (second_long >= f.threshold) kept |= bit(m, n, i + 2);
      if (second_short >= f.threshold) kept |= bit(m, n + 1, i);
      if (words.word[3] >= f.threshold) kept |= bit(m, n + 1, i + 2);
    }
  }
  return kept;
}

// Whether all of a warp's pairs take part: one answer for the warp, which stays together.
__device__ bool whole(unsigned visible) {
  return !config::has_mask || __all_sync(0xffffffffu, visible == every_pair);
}
__device__ bool hidden(unsigned visible) {
  return config::has_mask && !__any_sync(0xffffffffu, visible != 0);
}

// NaN if either is NaN.
__device__ float lesser(float a, float b) {
  float out;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(out) : "f"(a), "f"(b));
  return out;
}

// S and dP of one pair to P, less what dropout dropped, and dS in their place. Exponents stay at or
// below 0 where a large lse was rounded down.
struct Weigher {
  float factor;  // of the logit (of its product where there is no score), to base 2
  float scale, kept_scale;

  __device__ explicit Weigher(const Backward& f)
      : factor(config::has_score ? log2_e : f.scale * log2_e),
        scale(f.scale),
        kept_scale(f.kept_scale) {}

  template <class Row, class Key, class SlopeRow, class SlopeKey>
  __device__ void pair(const Call& call, const Head& head, const Row& row, const Key& key,
                       const SlopeRow& slope_row, const SlopeKey& slope_key, bool visible,
                       bool kept, float lse2, float delta, float& s, float& dp) const {
    float score = s, slope = 1.0f;
    if constexpr (config::has_score) {
      const float logit = scale * s;
      score = score_text::value(call.score, head.score, row, key, logit);
      slope = slope_text::value(call.slope, head.slope, slope_row, slope_key, logit);
      visible = visible && score != -infinity();
    }
    float p = exp2_fast(lesser(fmaf(score, factor, -lse2), 0.0f));
    p = visible ? p : 0.0f;
    float dweight = dp;
    if constexpr (config::has_dropout) dweight = kept ? dp * kept_scale : 0.0f;
    float ds = p * (dweight - delta);
    ds = visible ? ds : 0.0f;
    if constexpr (config::has_score) ds = ds == 0.0f ? 0.0f : ds * slope;
    s = kept ? p : 0.0f;
    dp = ds;
  }
};

// lse2_of(m, n, e) and delta_of(m, n, e) are those of the pair's row.
template <bool own_keys, class Lse, class Delta>
__device__ void weigh(const Call& call, const Head& head, int row0, int col0, unsigned visible,
                      unsigned kept, const Lse& lse2_of, const Delta& delta_of, Fragments& rS,
                      Fragments& rDP) {
  const Weigher weigher(call.backward);
#pragma unroll
  for (int n = 0; n < 4; ++n) {
#pragma unroll
    for (int m = 0; m < 2; ++m) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int row = row0 + row_of<own_keys>(m, n, e), col = col0 + key_of<own_keys>(m, n, e);
        const auto score_row = score_text::per_row(call.score, head.score, row);
        const auto score_key = score_text::per_key(call.score, head.score, col);
        const auto slope_row = slope_text::per_row(call.slope, head.slope, row);
        const auto slope_key = slope_text::per_key(call.slope, head.slope, col);
        weigher.pair(call, head, score_row, score_key, slope_row, slope_key,
                     (visible & bit(m, n, e)) != 0, (kept & bit(m, n, e)) != 0, lse2_of(m, n, e),
                     delta_of(m, n, e), rS[m][n][e], rDP[m][n][e]);
      }
    }
  }
}

// Fragments rounded, as A of the next product: [m][k] covers the short side's 16 k .. 16 k + 15.
__device__ void to_operand(const Fragments& c, unsigned (&a)[2][2][4]) {
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int k = 0; k < 2; ++k) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float(&x)[4] = c[m][2 * k + half];
        a[m][k][2 * half] = pack(config::Element{}, x[0], x[1]);
        a[m][k][2 * half + 1] = pack(config::Element{}, x[2], x[3]);
      }
    }
  }
}

// sums (32, 16 columns / 16) += a (32, 16) b (16, columns), b from rows `row` on and 16-columns
// `k0` on of a tile.
template <int columns, class Tile>
__device__ void add_product(float (&sums)[2][columns / 8][4], const unsigned (&a0)[4],
                            const unsigned (&a1)[4], const Reader<Tile>& reader, int row, int k0) {
#pragma unroll
  for (int n = 0; n < columns / 16; ++n) {
    unsigned b[4];
    load_transposed(b, reader.address(row, k0 + n));
    multiply(config::Element{}, sums[0][2 * n], a0, b[0], b[1]);
    multiply(config::Element{}, sums[1][2 * n], a1, b[0], b[1]);
    multiply(config::Element{}, sums[0][2 * n + 1], a0, b[2], b[3]);
    multiply(config::Element{}, sums[1][2 * n + 1], a1, b[2], b[3]);
  }
}

template <int columns>
__device__ bool finite(const float (&sums)[2][columns / 8][4]) {
  float zero = 0.0f;
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int n = 0; n < columns / 8; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) zero += sums[m][n][e] - sums[m][n][e];
    }
  }
  return zero == 0.0f;
}

// factor * sums to the rows s0 .. s0 + 31 of a (s, d) matrix, columns from d0 on.
template <int columns, class T>
__device__ void store_sums(const Strided& to, int64 b, int64 h, int s0, int s_end, int d0,
                           int d_end, float factor, const float (&sums)[2][columns / 8][4]) {
  T* const g = place<T>(to, b, h);
  const bool in_pairs = sizeof(T) == 2 && to.d == 1 && to.s % 2 == 0 && d_end % 2 == 0 &&
                        (unsigned long long)g % 4 == 0;
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int s = s0 + long_of(m, 2 * j);
      if (s >= s_end) continue;
#pragma unroll
      for (int n = 0; n < columns / 8; ++n) {
        const int d = d0 + short_of(n, 0);
        const float low = factor * sums[m][n][2 * j], high = factor * sums[m][n][2 * j + 1];
        if (in_pairs) {
          if (d < d_end) {
            if constexpr (sizeof(T) == 2) *(unsigned*)(g + s * to.s + d) = pack(T{}, low, high);
          }
        } else {
          if (d < d_end) store(g + s * to.s + d * to.d, low);
          if (d + 1 < d_end) store(g + s * to.s + (d + 1) * to.d, high);
        }
      }
    }
  }
}

// The at-th tile of a grid: heads in sections whose data fits the second cache, of all heads of a
// section the first tiles first.
struct Place {
  int64 head, tile;
};
__device__ Place place_of(int64 at, int64 heads, int64 tiles, int64 section_heads) {
  const int64 section = at / (section_heads * tiles), first = section * section_heads;
  const int64 here = heads - first < section_heads ? heads - first : section_heads;
  const int64 rest = at - first * tiles;
  return {first + rest % here, rest / here};
}

}  // namespace
