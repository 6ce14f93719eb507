// What the backward's kernels need of each row, before they run, and the gradient of the sink:
//   delta = <dout, o> - dlse, and lse, +inf where a row saw no key: then every weight is 0
//   dsink = -sum of exp(sink - lse) delta over the rows and sequences of a head
//
// backward_delta: a warp a row, rows to stat_rows; sums in float64, for an error of delta would be
//                 in every dS of the row alike, and not average out of sums over keys.
// backward_sink:  a block a head; a thread takes every 256th row, then a tree adds the threads.
#include "cuda/kernels/backward_call.cuh"

namespace {

constexpr int threads = 256, warps = threads / 32;

__device__ double warp_sum(double x) {
  for (int lane = 1; lane < 32; lane *= 2) x += __shfl_xor_sync(0xffffffffu, x, lane);
  return x;
}

// Where o is 0, dout has no say (it may be NaN where a row saw no key).
__device__ double dout_times_o(const Backward& f, int64 b, int64 h, int64 row) {
  const auto* const gO = place<const config::Output>(f.o, b, h) + row * f.o.s;
  const auto* const gDO = place<const config::DOutput>(f.dout, b, h) + row * f.dout.s;
  double sum = 0.0;
  for (int d = threadIdx.x % 32; d < config::d_v; d += 32) {
    const float o = element(gO[d * f.o.d]);
    if (o != 0.0f) sum += double(o) * double(element(gDO[d * f.dout.d]));
  }
  return warp_sum(sum);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads)
    backward_delta(const __grid_constant__ Call call) {
  const Backward& f = call.backward;
  const int64 rows = f.b * f.h_q * f.stat_rows;
  for (int64 at = int64(blockIdx.x) * warps + threadIdx.x / 32; at < rows;
       at += int64(gridDim.x) * warps) {
    const int64 row = at % f.stat_rows, h = at / f.stat_rows % f.h_q;
    const int64 b = at / f.stat_rows / f.h_q;
    float lse = infinity();
    double delta = 0.0;
    if (row < f.s_q) {
      delta = dout_times_o(f, b, h, row);
      if (f.dlse.data) delta -= double(place<const float>(f.dlse, b, h)[row * f.dlse.s]);
      lse = place<const float>(f.lse, b, h)[row * f.lse.s];
      if (lse == -infinity()) lse = infinity();
    }
    if (threadIdx.x % 32 != 0) continue;
    f.row_lse[at] = lse;
    f.row_delta[at] = float(delta);
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
