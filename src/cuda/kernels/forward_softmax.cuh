// Online softmax of a warp's rows (Milakov & Gimelshein 2018):
//   m' = max(m, c max S),  alpha = e^(m - m'),  P = e^(c S - m'),  l' = alpha l + sum P
// where c = |scale|, or 1 after a score, and m is near the largest logit so far: it moves only
// where that grew by more than `slack`, so that sums are seldom rescaled. P stays below e^slack.
//
// Exponents are taken in log2 units: one fma of S with c log2(e) and the rounded m log2(e). That
// rounding moves every weight of a row alike: o does not see it, and lse knows of it. Its size
// grows with m, so that large m are subtracted before log2(e) multiplies.
#pragma once
#include "cuda/kernels/forward_fragments.cuh"

namespace {

constexpr float log2_e = 1.4426950408889634f, ln_2 = 0.6931471805599453f;
constexpr float large_log2 = 65536.0f, slack = 5.5f;

struct RowState {
  RowNumbers m, l;  // l: of this lane's columns
};

// What exponents subtract; 0 where no key was seen: their logits are -inf and stay so.
__device__ float subtrahend(float m) { return m == -infinity() ? 0.0f : m * log2_e; }
__device__ bool is_large(float m) { return fabsf(subtrahend(m)) > large_log2; }
// What rounding takes from it.
__device__ float rounding(float m) {
  return is_large(m) || m == -infinity() ? 0.0f : fmaf(m, log2_e, -(m * log2_e));
}
__device__ float rescale_factor(float before, float now) {
  if (!is_large(before) && !is_large(now)) {
    return exp2_fast(before * log2_e - subtrahend(now));
  }
  return exp2_fast((before - now) * log2_e + (rounding(now) - rounding(before)));
}
// log2 of the weight of a logit s in natural units, before division by l.
__device__ float exponent(float s, float m) {
  return is_large(m) ? (s - m) * log2_e : fmaf(s, log2_e, -subtrahend(m));
}
__device__ float row_lse(float m, float l) {
  if (l == 0.0f) return -infinity();
  return is_large(m) ? m + logf(l) : (subtrahend(m) + log2f(l)) * ln_2;
}

// Of the four lanes of a row.
__device__ float row_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
__device__ float row_sum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

// New m, and l after it; rescale(i, alpha) gets what row i's sums of old weights are to be
// multiplied by. False, and nothing of that, where no row of the warp moved.
template <class Rescale>
__device__ bool raise_max(RowState& state, const Logits& rS, float c, const Rescale& rescale) {
  RowNumbers largest;
  bool grew = false;
#pragma unroll
  for (int i = 0; i < 2 * row_blocks; ++i) {
    float most = -infinity();
#pragma unroll
    for (int key = 0; key < key_blocks; ++key) {
      const float* const pair = &rS[i / 2][key][i % 2 * 2];
      most = fmaxf(most, fmaxf(pair[0], pair[1]));
    }
    most = row_max(most) * c;
    largest[i / 2][i % 2] = most;
    grew |= most > state.m[i / 2][i % 2] + slack;
  }
  if (!__any_sync(0xffffffffu, grew)) return false;
#pragma unroll
  for (int i = 0; i < 2 * row_blocks; ++i) {
    float& m = state.m[i / 2][i % 2];
    const float now = largest[i / 2][i % 2] > m + slack ? largest[i / 2][i % 2] : m;
    const float alpha = now == m ? 1.0f : rescale_factor(m, now);
    m = now;
    state.l[i / 2][i % 2] *= alpha;
    rescale(i, alpha);
  }
  return true;
}

__device__ void rescale_row(Sums& rO, int i, float alpha) {
#pragma unroll
  for (int column = 0; column < column_blocks; ++column) {
    rO[i / 2][column][i % 2 * 2] *= alpha;
    rO[i / 2][column][i % 2 * 2 + 1] *= alpha;
  }
}

// Weights are 2^(factor S - subtracted).
struct Exponents {
  float factor;
  RowNumbers subtracted;
};

// Under a large m, rS becomes the exponents themselves.
__device__ Exponents exponents_of(const RowState& state, Logits& rS, float c) {
  Exponents of;
  of.factor = c * log2_e;
  float most = 0.0f;
#pragma unroll
  for (int i = 0; i < 2 * row_blocks; ++i) {
    of.subtracted[i / 2][i % 2] = subtrahend(state.m[i / 2][i % 2]);
    most = fmaxf(most, fabsf(of.subtracted[i / 2][i % 2]));
  }
  if (!(most > large_log2)) return of;
  of.factor = 1.0f;
#pragma unroll
  for (int i = 0; i < 2 * row_blocks; ++i) {
    of.subtracted[i / 2][i % 2] = 0.0f;
#pragma unroll
    for (int j = 0; j < 2 * key_blocks; ++j) {
      float& s = rS[i / 2][j / 2][i % 2 * 2 + j % 2];
      s = exponent(s * c, state.m[i / 2][i % 2]);
    }
  }
  return of;
}

// Logits to weights, in place.
__device__ void weigh(RowState& state, Logits& rS, float c) {
  const Exponents of = exponents_of(state, rS, c);
#pragma unroll
  for (int i = 0; i < 2 * row_blocks; ++i) {
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < 2 * key_blocks; ++j) {
      float& s = rS[i / 2][j / 2][i % 2 * 2 + j % 2];
      s = exp2_fast(fmaf(s, of.factor, -of.subtracted[i / 2][i % 2]));
      sum += s;
    }
    state.l[i / 2][i % 2] += sum;
  }
}

}  // namespace
