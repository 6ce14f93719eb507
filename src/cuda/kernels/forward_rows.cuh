// A row's beginning and its end: the sink, and o and lse.
#pragma once
#include "cuda/kernels/forward_pairs.cuh"
#include "cuda/kernels/forward_softmax.cuh"

namespace {

__device__ RowState first_state(const Call& call, int64 h) {
  const Forward& f = call.forward;
  RowState state;
  // The sink is one more term of l, in the first lane of a row; no term at all where it is -inf.
  float m = -infinity();
  if constexpr (config::has_sink) m = ((const float*)f.sink.data)[h * f.sink.h];
#pragma unroll
  for (int i = 0; i < 2 * row_blocks; ++i) {
    state.m[i / 2][i % 2] = m;
    state.l[i / 2][i % 2] = threadIdx.x % 4 == 0 && m != -infinity() ? 1.0f : 0.0f;
  }
  return state;
}

__device__ void store_both(float* to, float x, float y) { *(float2*)to = {x, y}; }
template <class Output>
__device__ void store_both(Output* to, float x, float y) {
  *(unsigned*)to = pack(Output{}, x, y);
}

__device__ void store_pair(config::Output* to, int64 stride, int column, float x, float y) {
  if (config::stores_pairs && column + 1 < config::d_v) return store_both(to + column, x, y);
  if (column < config::d_v) store(to + column * stride, x);
  if (column + 1 < config::d_v) store(to + (column + 1) * stride, y);
}

// From word[i] of a pair in block i, of each of a row's four lanes, to the four words of block
// `lane`: its 16 bytes.
__device__ uint4 gather_block(unsigned (&word)[4], int lane) {
  const auto exchange = [](unsigned& low, unsigned& high, bool is_high, int distance) {
    const unsigned other = __shfl_xor_sync(0xffffffffu, is_high ? low : high, distance);
    (is_high ? low : high) = other;
  };
  exchange(word[0], word[1], lane % 2 != 0, 1);
  exchange(word[2], word[3], lane % 2 != 0, 1);
  exchange(word[0], word[2], lane / 2 != 0, 2);
  exchange(word[1], word[3], lane / 2 != 0, 2);
  return {word[0], word[1], word[2], word[3]};
}

// One row of o: 8 bytes of every fourth of its pairs, or 16 of every fourth of its blocks.
template <class Output>
__device__ void store_row(const Forward& f, Output* to, bool inside, const Sums& rO, int i,
                          float factor, bool none) {
  const int lane = threadIdx.x % 4;
  const auto value = [&](int column, int one) {
    return none ? 0.0f : rO[i / 2][column][i % 2 * 2 + one] * factor;
  };
  if constexpr (config::stores_blocks) {
#pragma unroll
    for (int first = 0; first < column_blocks; first += 4) {
      unsigned word[4] = {};
#pragma unroll
      for (int j = 0; j < 4 && first + j < column_blocks; ++j) {
        word[j] = pack(Output{}, value(first + j, 0), value(first + j, 1));
      }
      const uint4 block = gather_block(word, lane);
      const int column = 8 * (first + lane);
      if (inside && column < config::d_v) *(uint4*)(to + column) = block;
    }
  } else if (inside) {
#pragma unroll
    for (int column = 0; column < column_blocks; ++column) {
      store_pair(to, f.o.d, 8 * column + 2 * lane, value(column, 0), value(column, 1));
    }
  }
}

// o = rO / (l (1 - dropout)), lse = m + ln l; 0 and -inf where nothing is visible. `bad`: rows
// whose o is not finite, though l is a number.
__device__ void store_rows(const Forward& f, const Head& head, Place at, RowState& state,
                           const Sums& rO, bool (&bad)[row_blocks][2]) {
  const int lane = threadIdx.x % 4;
#pragma unroll
  for (int i = 0; i < 2 * row_blocks; ++i) {
    const int row = at.row + 8 * i;
    float& l = state.l[i / 2][i % 2];
    l = row_sum(l);
    const bool inside = row < f.s_q;
    if (config::has_lse && lane == 0 && inside) {
      place<float>(f.lse, head.b, head.h)[row * f.lse.s] = row_lse(state.m[i / 2][i % 2], l);
    }
    store_row(f, place<config::Output>(f.o, head.b, head.h) + row * f.o.s, inside, rO, i,
              l == 0.0f ? 0.0f : f.kept_scale / l, l == 0.0f);
    float vote = 0.0f;  // x * 0 is NaN for infinities and NaN
#pragma unroll
    for (int column = 0; column < column_blocks; ++column) {
      const float* const pair = &rO[i / 2][column][i % 2 * 2];
      vote = fmaf(pair[0], 0.0f, fmaf(pair[1], 0.0f, vote));
    }
    bad[i / 2][i % 2] = inside && vote != 0.0f && l > 0.0f;
  }
}

}  // namespace
