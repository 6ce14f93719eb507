// Rows whose o came out not finite, once more: it may have come from a value (NaN, infinity) under
// a weight of 0, of a key that the row does not see, or from a sum of weights times values that
// overflowed. Here a warp takes one row, pair by pair: hidden and dropped pairs stay out, and
// weights are divided by l before they are summed.
#pragma once
#include "cuda/kernels/forward_pairs.cuh"
#include "cuda/kernels/forward_softmax.cuh"

namespace {

// The keys of [limits.first, limits.last] to one row of o; lane l has the columns l, l + 32, ...
__device__ void attend_isolated(const Call& call, const Head& head, const Limits& limits, int row,
                                float m, float l) {
  constexpr int columns = (config::d_v + 31) / 32;
  const Forward& f = call.forward;
  const int lane = threadIdx.x % 32;
  const int64 h_kv = head.h / f.group;
  const auto* const q = place<const config::Element>(f.q, head.b, head.h) + row * f.q.s;
  const auto* const gK = place<const config::Element>(f.k, head.b, h_kv);
  const auto* const gV = place<const config::Element>(f.v, head.b, h_kv);
  const auto mask_row = mask_text::per_row(call.mask, head.mask, row);
  const auto score_row = score_text::per_row(call.score, head.score, row);
  float o[columns] = {};
#pragma unroll 1
  for (int col0 = limits.first; col0 <= limits.last; col0 += 32) {
    const int col = col0 + lane;
    float weight = -1.0f;  // left out of o
    if (col <= limits.last) {
      float s = 0.0f;
#pragma unroll 1
      for (int i = 0; i < config::d; ++i) s = fmaf(element(q[i]), element(gK[col * f.k.s + i]), s);
      const auto score_key = score_text::per_key(call.score, head.score, col);
      s = score_text::value(call.score, head.score, score_row, score_key, f.scale * s);
      const auto mask_key = mask_text::per_key(call.mask, head.mask, col);
      const bool visible =
          s != -infinity() && mask_text::value(call.mask, head.mask, mask_row, mask_key);
      if (visible && kept(f, head.dropout, row, col)) weight = exp2_fast(exponent(s, m)) / l;
    }
#pragma unroll 1
    for (int key = 0; key < 32; ++key) {
      const float p = __shfl_sync(0xffffffffu, weight, key);
      if (p < 0.0f) continue;
      const auto* const v = gV + (col0 + key) * f.v.s;
#pragma unroll
      for (int i = 0; i < columns; ++i) {
        if (lane + 32 * i < config::d_v) o[i] = fmaf(p, element(v[lane + 32 * i]), o[i]);
      }
    }
  }
  auto* const gO = place<config::Output>(f.o, head.b, head.h) + row * f.o.s;
#pragma unroll
  for (int i = 0; i < columns; ++i) {
    if (lane + 32 * i < config::d_v) store(gO + (lane + 32 * i) * f.o.d, o[i] * f.kept_scale);
  }
}

// The rows of a warp that need it; `state.l` is that of the whole row. `scratch`: shared memory of
// the warp, 8 bytes a row.
__device__ void isolate_rows(const Call& call, const Head& head, const Limits& limits, Place at,
                             const RowState& state, const bool (&bad)[row_blocks][2],
                             float2* scratch) {
  bool any = false;
#pragma unroll
  for (int i = 0; i < 2 * row_blocks; ++i) any |= bad[i / 2][i % 2];
  if (!__any_sync(0xffffffffu, any)) return;
  const int g = threadIdx.x % 32 / 4;
#pragma unroll
  for (int i = 0; i < 2 * row_blocks; ++i) {
    // One bad lane makes the row bad.
    const unsigned lanes = __ballot_sync(0xffffffffu, bad[i / 2][i % 2]);
    const bool row_is_bad = (lanes >> (4 * g) & 15u) != 0;
    if (threadIdx.x % 4 == 0) {
      scratch[8 * i + g] = {state.m[i / 2][i % 2], row_is_bad ? state.l[i / 2][i % 2] : -1.0f};
    }
  }
  __syncwarp();
#pragma unroll 1
  for (int i = 0; i < 16 * row_blocks; ++i) {
    const float2 one = scratch[i];
    if (one.y < 0.0f) continue;
    attend_isolated(call, head, limits, at.row - g + i, one.x, one.y);
  }
}

}  // namespace
