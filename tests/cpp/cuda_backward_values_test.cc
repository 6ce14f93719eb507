// The GPU's backward where values or layouts are unusual: NaN that takes no part, strides, repeats.
// Needs a GPU.
#include <gtest/gtest.h>

#include <cmath>

#include "cuda_backward_run.h"
#include "cuda_here.h"

namespace onepass {
namespace {

using cpu_test::BackwardCase;
using cpu_test::BackwardRun;
using cpu_test::Buffer;
using cuda_test::run_on_gpu;

void spoil(Buffer& buffer, const TensorView& view, std::int64_t s) {
  for (std::int64_t b = 0; b < view.shape[0]; ++b) {
    for (std::int64_t h = 0; h < view.shape[2]; ++h) {
      for (std::int64_t i = 0; i < view.shape[3]; ++i) {
        buffer.set(b * view.strides[0] + s * view.strides[1] + h * view.strides[2] + i,
                   std::nan(""));
      }
    }
  }
}

TEST(CudaBackwardValues, NanStaysWhereItIsVisible) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    for (const char* mask : {"k != 60 | row >= 40", "k != 60"}) {
      for (const bool in_v : {false, true}) {
        BackwardRun run({.forward = {.h_q = 2,
                                     .h_kv = 1,
                                     .s_q = 70,
                                     .s_kv = 100,
                                     .d = 64,
                                     .d_v = 64,
                                     .dtype = dtype,
                                     .out_dtype = dtype,
                                     .options = {.mask = mask}}});
        if (in_v) {
          spoil(run.call.v, run.call.v_view, 60);
        } else {
          spoil(run.call.k, run.call.k_view, 60);
        }
        run.call.run();
        run_on_gpu(run);
        const cpu_test::Errors errors = cpu_test::errors_of(run, run.expected());
        EXPECT_LE(errors.largest(), dtype == DType::float32 ? 1e-5 : 2e-2)
            << name(dtype) << " " << mask << (in_v ? " v" : " k") << ": dq " << errors.dq << " dk "
            << errors.dk << " dv " << errors.dv;
      }
    }
  }
}

TEST(CudaBackwardValues, NanInAValueSparesTheRowsThatDroppedIt) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    BackwardRun run({.forward = {.s_q = 70,
                                 .s_kv = 100,
                                 .d = 64,
                                 .d_v = 64,
                                 .dtype = dtype,
                                 .out_dtype = dtype,
                                 .options = {.dropout = {.p = 0.5, .seed = 2}}}});
    spoil(run.call.v, run.call.v_view, 60);
    run.call.run();
    run_on_gpu(run);
    const cpu_test::Errors errors = cpu_test::errors_of(run, run.expected());
    EXPECT_LE(errors.largest(), dtype == DType::float32 ? 1e-5 : 2e-2) << name(dtype);
  }
}

// (b, h, s, d) buffers seen as (b, s, h, d).
void turn(Buffer& buffer, const TensorView& like, TensorView& view) {
  const std::int64_t s = like.shape[1], h = like.shape[2], d = like.shape[3];
  Buffer turned(buffer.dtype(), like.elements());
  for (std::int64_t i = 0; i < like.elements(); ++i) {
    const std::int64_t to = ((i / (s * h * d) * h + i / d % h) * s + i / (h * d) % s) * d + i % d;
    turned.set(to, buffer.get(i));
  }
  buffer = turned;
  view.data = buffer.data();
  view.strides = {s * h * d, d, s * d, 1};
}

TEST(CudaBackwardValues, StridesAndRepeatsChangeNoBit) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    const BackwardCase c{.forward = {.b = 2,
                                     .h_q = 4,
                                     .h_kv = 2,
                                     .s_q = 300,
                                     .s_kv = 500,
                                     .d = 64,
                                     .d_v = 64,
                                     .dtype = dtype,
                                     .out_dtype = dtype,
                                     .options = {.mask = "causal"}},
                         .gradient_dtype = dtype};
    BackwardRun run(c), other(c);
    run.call.run(), other.call.run();
    run_on_gpu(run);
    const std::vector<unsigned char> dq = run.dq.bytes(), dk = run.dk.bytes(), dv = run.dv.bytes();
    for (int i = 0; i < 5; ++i) {
      run_on_gpu(run);
      EXPECT_EQ(run.dq.bytes(), dq);
      EXPECT_EQ(run.dk.bytes(), dk);
      EXPECT_EQ(run.dv.bytes(), dv);
    }
    const TensorView q = other.call.q_view, k = other.call.k_view, o = other.call.o_view;
    turn(other.call.q, q, other.call.q_view), turn(other.call.k, k, other.call.k_view);
    turn(other.call.v, k, other.call.v_view), turn(other.call.o, o, other.backward.o);
    turn(other.dout, o, other.backward.dout), turn(other.dq, q, other.backward.dq);
    turn(other.dk, k, other.backward.dk), turn(other.dv, k, other.backward.dv);
    run_on_gpu(other);
    TensorView unused;
    TensorView straight = q;
    // Turned once more with s and h exchanged they are as they were.
    std::swap(straight.shape[1], straight.shape[2]);
    turn(other.dq, straight, unused);
    straight = k;
    std::swap(straight.shape[1], straight.shape[2]);
    turn(other.dk, straight, unused), turn(other.dv, straight, unused);
    EXPECT_EQ(other.dq.bytes(), dq);
    EXPECT_EQ(other.dk.bytes(), dk);
    EXPECT_EQ(other.dv.bytes(), dv);
  }
}

}  // namespace
}  // namespace onepass
