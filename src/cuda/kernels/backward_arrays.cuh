// Gradient of an array that the score reads, from one of the places where it reads it:
//   sums[place(pair)] += P (dP - delta) d score / d (element read)
// in a fixed order and without atomics. Before this text stand, besides the others, the texts of
// the factor d score / d (element) and of the place, an element's number or -1.
//
// Grid:  a block a chain, which adds its tiles one after the other, to sums that no other chain
//        adds to: a copy of its own, or elements that are its own.
// Tile:  backward_tile.cuh. config::places says what its pairs read: the same element, each another
//        one, or any; of any, thread t adds the elements t, t + 256, ...
#include "cuda/kernels/backward_tile.cuh"

namespace {

struct Chains {
  void* sums;           // of chain 0; double, or config::Sum = float: the gradient itself
  int64 elements;       // from one chain's sums to the next's, 0 where they share them
  int64 heads, ranges;  // a chain takes every heads-th (sequence, key/value head) and in these
                        // every ranges-th tile of keys
};

struct ArrayCall {
  Call call;
  factor_text::Parameters factor;
  place_text::Parameters place;
  Chains chains;
};

enum class Places { one, each_another, any };
constexpr Places places = Places(config::places);

struct Gathered {
  float value[tile_rows][tile_keys];
  int64 place[tile_rows][tile_keys];
};

__device__ double block_sum(double x) {
  __shared__ double warps[threads / 32];
  for (int lane = 1; lane < 32; lane *= 2) x += __shfl_xor_sync(0xffffffffu, x, lane);
  __syncthreads();
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = x;
  __syncthreads();
  double sum = 0.0;
  for (int i = 0; i < threads / 32; ++i) sum += warps[i];
  return sum;
}

// Pairs with dS' = 0 add nothing, whatever their factor.
template <class Take>
__device__ void each_pair(const ArrayCall& call, const Head& head, int64 row0, int64 col0,
                          const Pairs& pairs, const Take& take) {
  const Backward& f = call.call.backward;
  const Scope scope = scope_of(f, head.b, head.h);
  const factor_text::PerScope factor_scope = factor_text::per_scope(call.factor, scope);
  const place_text::PerScope place_scope = place_text::per_scope(call.place, scope);
#pragma unroll
  for (int i = 0; i < thread_rows; ++i) {
    const int r = threadIdx.x / side * thread_rows + i;
    const auto factor_row = factor_text::per_row(call.factor, factor_scope, row0 + r);
    const auto place_row = place_text::per_row(call.place, place_scope, row0 + r);
#pragma unroll
    for (int j = 0; j < thread_keys; ++j) {
      const int c = threadIdx.x % side + side * j;
      const float logit = pairs.logit[i][j], ds = pairs.score_ds[i][j];
      float value = 0.0f;
      int64 place = -1;
      if (ds != 0.0f) {
        const auto factor_key = factor_text::per_key(call.factor, factor_scope, col0 + c);
        const auto place_key = place_text::per_key(call.place, place_scope, col0 + c);
        value = ds * factor_text::value(call.factor, factor_scope, factor_row, factor_key, logit);
        place = int64(place_text::value(call.place, place_scope, place_row, place_key, logit));
      }
      take(r, c, place, value);
    }
  }
}

// Every place that a pair of the tile reads, in order of rows and keys.
__device__ void add_gathered(const Gathered& gathered, config::Sum* sums) {
  for (int r = 0; r < tile_rows; ++r) {
    for (int c = 0; c < tile_keys; ++c) {
      const int64 place = gathered.place[r][c];
      if (place < 0 || place % threads != threadIdx.x) continue;
      sums[place] += config::Sum(gathered.value[r][c]);
    }
  }
}

__device__ void take_tile(const ArrayCall& call, Shared& shared, Gathered& gathered, int64 b,
                          int64 h, int64 col0, config::Sum* sums) {
  const Head head = head_of(call.call, b, h);
  double sum = 0.0;  // of Places::one
  int64 place_of_sum = -1;
  for (int64 row0 = 0; row0 < call.call.backward.s_q; row0 += tile_rows) {
    bool isolate;
    Pairs pairs;
    if (!step(call.call, head, shared, row0, col0, isolate, pairs)) continue;
    each_pair(call, head, row0, col0, pairs, [&](int r, int c, int64 place, float value) {
      if constexpr (places == Places::one) {
        sum += double(value);
        if (place >= 0) place_of_sum = place;
      } else if constexpr (places == Places::each_another) {
        if (place >= 0) sums[place] += config::Sum(value);
      } else {
        gathered.value[r][c] = value, gathered.place[r][c] = place;
      }
    });
    if constexpr (places == Places::any) {
      __syncthreads();
      add_gathered(gathered, sums);
    }
    __syncthreads();
  }
  if constexpr (places == Places::one) {
    sum = block_sum(sum);
    // Every thread that met a pair knows the place; the first of them adds.
    __shared__ int first;
    if (threadIdx.x == 0) first = threads;
    __syncthreads();
    if (place_of_sum >= 0) atomicMin(&first, int(threadIdx.x));
    __syncthreads();
    if (threadIdx.x == first) sums[place_of_sum] += config::Sum(sum);
    __syncthreads();
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads, 1)
    backward_arrays(const __grid_constant__ ArrayCall call) {
  __shared__ Shared shared;
  __shared__ Gathered gathered;
  const Backward& f = call.call.backward;
  const Chains& chains = call.chains;
  const int64 tiles = (f.s_kv + tile_keys - 1) / tile_keys, h_kv = f.h_q / f.group;
  auto* const sums = (config::Sum*)chains.sums + blockIdx.x * chains.elements;
  for (int64 head = blockIdx.x / chains.ranges; head < f.b * h_kv; head += chains.heads) {
    for (int64 tile = blockIdx.x % chains.ranges; tile < tiles; tile += chains.ranges) {
      for (int64 member = 0; member < f.group; ++member) {
        const int64 h = head % h_kv * f.group + member;
        take_tile(call, shared, gathered, head / h_kv, h, tile * tile_keys, sums);
      }
    }
  }
}
