// What the backward's kernels need of each row, before they run, and the gradient of the sink:
//   delta = <dout, o> - dlse, and lse, +inf where a row saw no key: then every weight is 0
//   dsink = -sum of exp(sink - lse) delta over the rows and sequences of a head
//
// backward_delta: a block 128 rows of a head, some neighbouring threads a row; sums in float64, for
//                 an error of delta would be in every dS of the row alike, and not average out of
//                 sums over keys.
// backward_sink:  a block a head; a thread takes every 256th row, then a tree adds the threads.
#include "cuda/kernels/backward_call.cuh"

namespace {

constexpr int threads = 256;

constexpr int lanes = config::d_v <= 64 ? 8 : 16;  // of a row
constexpr int tile_rows = 128, rows_at_once = threads / lanes;

template <class T>
__device__ T row_sum(T x) {
  for (int lane = 1; lane < lanes; lane *= 2) x += __shfl_xor_sync(0xffffffffu, x, lane);
  return x;
}

// Where o is 0, dout has no say (it may be NaN where a row saw no key).
template <class Sum>
__device__ void add(Sum& sum, float o, float dout) {
  if (o != 0.0f) sum += Sum(o) * Sum(dout);
}

// Of 16-bit rows in whole pieces of 16 bytes; else false. Their products are whole in float32, and
// so few terms lose nothing that they had.
template <class Output, class DOutput>
__device__ bool add_pieces(const Output* gO, const DOutput* gDO, int64 o_stride, int64 dout_stride,
                           float& sum) {
  if constexpr (sizeof(Output) == 2 && sizeof(DOutput) == 2 && config::d_v % 8 == 0) {
    const bool whole =
        o_stride == 1 && dout_stride == 1 && uint64(gO) % 16 == 0 && uint64(gDO) % 16 == 0;
    if (!whole) return false;
    for (int d = threadIdx.x % lanes * 8; d < config::d_v; d += 8 * lanes) {
      const uint4 o = *(const uint4*)(gO + d), dout = *(const uint4*)(gDO + d);
      const unsigned os[] = {o.x, o.y, o.z, o.w}, douts[] = {dout.x, dout.y, dout.z, dout.w};
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const unsigned short x = (unsigned short)(os[i / 2] >> (16 * (i % 2)));
        const unsigned short y = (unsigned short)(douts[i / 2] >> (16 * (i % 2)));
        add(sum, element(Output{x}), element(DOutput{y}));
      }
    }
    return true;
  }
  return false;
}

// The lane's share.
__device__ double dout_times_o(const Backward& f, int64 b, int64 h, int64 row) {
  const auto* const gO = place<const config::Output>(f.o, b, h) + row * f.o.s;
  const auto* const gDO = place<const config::DOutput>(f.dout, b, h) + row * f.dout.s;
  float short_sum = 0.0f;
  if (add_pieces(gO, gDO, f.o.d, f.dout.d, short_sum)) return double(short_sum);
  double sum = 0.0;
  for (int d = threadIdx.x % lanes; d < config::d_v; d += lanes) {
    add(sum, element(gO[d * f.o.d]), element(gDO[d * f.dout.d]));
  }
  return sum;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads)
    backward_delta(const __grid_constant__ Call call) {
  const Backward& f = call.backward;
  for (int64 i = int64(blockIdx.x) * threads + threadIdx.x; i < f.again_ints;
       i += int64(gridDim.x) * threads) {
    f.again[i] = 0;
  }
  const int64 tiles = f.stat_rows / tile_rows;
  for (int64 at = blockIdx.x; at < f.b * f.h_q * tiles; at += gridDim.x) {
    const int64 head = at / tiles, b = head / f.h_q, h = head % f.h_q;
    const int64 row0 = at % tiles * tile_rows;
#pragma unroll(sizeof(config::Output) == 2 ? 4 : 1)
    for (int r = threadIdx.x / lanes; r < tile_rows; r += rows_at_once) {
      const int64 row = row0 + r;
      double delta = row_sum(row < f.s_q ? dout_times_o(f, b, h, row) : 0.0);
      if (threadIdx.x % lanes != 0) continue;
      float lse = infinity();
      if (row < f.s_q) {
        if (f.dlse.data) delta -= double(place<const float>(f.dlse, b, h)[row * f.dlse.s]);
        lse = place<const float>(f.lse, b, h)[row * f.lse.s];
        if (lse == -infinity()) lse = infinity();
      }
      f.row_lse[head * f.stat_rows + row] = lse;
      f.row_delta[head * f.stat_rows + row] = float(delta);
    }
  }
}

extern "C" __global__ void __launch_bounds__(threads)
    backward_sink(const __grid_constant__ Call call) {
  __shared__ double sums[threads];
  const Backward& f = call.backward;
  for (int64 h = blockIdx.x; h < f.h_q; h += gridDim.x) {
    const float sink = ((const float*)f.sink.data)[h * f.sink.h];
    double sum = 0.0;
    for (int64 i = threadIdx.x; i < f.b * f.s_q; i += threads) {
      const int64 at = (i / f.s_q * f.h_q + h) * f.stat_rows + i % f.s_q;
      const float lse = f.row_lse[at];
      if (sink == -infinity()) continue;
      // Of the whole when nothing else counts, beside infinity too.
      const double weight = sink == lse ? 1.0 : exp(double(sink) - double(lse));
      if (lse != infinity() || sink == lse) sum -= weight * double(f.row_delta[at]);
    }
    __syncthreads();
    sums[threadIdx.x] = sum;
    for (int half = threads / 2; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0) ((float*)f.dsink.data)[h * f.dsink.h] = float(sums[0]);
  }
}
