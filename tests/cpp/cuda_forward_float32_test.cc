// The tensor-core forward kernel of float32 calls beside the CPU in float64 on the same values.
// Needs a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "cuda_forward_case.h"
#include "cuda_here.h"
#include "device_memory.h"

namespace onepass {
namespace {

using cpu_test::Call;
using cpu_test::Case;
using cuda_test::run_on_gpu;
using cuda_test::Values;

void expect_right_by_tensor_cores(const Case& c, const std::vector<Values>& arrays = {}) {
  cuda_test::expect_right_by("cuda.forward.sm80", c, DType::float32, arrays);
}

TEST(CudaForwardFloat32, LengthsAroundTheTiles) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  for (const std::int64_t d : {64, 128, 256}) {
    for (const std::int64_t s_q : {1, 63, 129, 300}) {
      for (const std::int64_t s_kv : {0, 1, 15, 33, 64, 500}) {
        Case c{.b = 2, .h_q = 2, .h_kv = 2, .s_q = s_q, .s_kv = s_kv, .d = d, .d_v = d};
        c.options.mask = "causal";
        expect_right_by_tensor_cores(c);
      }
    }
  }
}

TEST(CudaForwardFloat32, HeadDimsAndGroups) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  for (const auto& [d, d_v] : {std::pair{4, 8},
                               {8, 4},
                               {12, 36},
                               {48, 80},
                               {72, 64},
                               {96, 100},
                               {112, 112},
                               {128, 64},
                               {160, 152},
                               {192, 128},
                               {64, 256},
                               {256, 8}}) {
    Case c{.b = 2, .h_q = 6, .h_kv = 2, .s_q = 150, .s_kv = 270, .d = d, .d_v = d_v};
    expect_right_by_tensor_cores(c);
    c.options.mask = "causal", c.options.score = "softcap(s, 3)";
    c.options.dropout = {.p = 0.3, .seed = 7};
    expect_right_by_tensor_cores(c);
  }
}

TEST(CudaForwardFloat32, MasksScoresSinksAndNegativeScales) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  const Values slopes{"slopes", {0.5F, 0.25F, 0.125F, 0.0625F}, {4}};
  for (const std::int64_t d : {64, 128, 256}) {
    for (const char* mask : {"window(100, 30)", "k == 300", "k > q + 1000", "chunked_causal(96)",
                             "sink_window(4, 50)", "causal & h_kv == 1", "q % 3 != 0"}) {
      Case c{.b = 1, .h_q = 4, .h_kv = 2, .s_q = 133, .s_kv = 400, .d = d, .d_v = d};
      c.options.mask = mask, c.with_sink = true, c.options.scale = -0.3;
      expect_right_by_tensor_cores(c);
      c.options.score = "alibi(s, slopes)";
      expect_right_by_tensor_cores(c, {slopes});
    }
  }
}

// As CPU and float64 have it: an infinity in k makes logits of infinity, minus infinity or NaN.
TEST(CudaForwardFloat32, NanAndInfinityReachWhatSeesThem) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  const double infinity = std::numeric_limits<double>::infinity();
  const std::int64_t s = 150, at = 70, d = 64;
  for (const bool in_v : {true, false}) {
    for (const double value : {std::numeric_limits<double>::quiet_NaN(), infinity, -infinity}) {
      for (const char* mask : {"causal", "q != 100 & k <= q"}) {
        Case c{.s_q = s, .s_kv = s, .d = d, .d_v = d, .dtype = DType::float32};
        c.out_dtype = DType::float32, c.options.mask = mask;
        Call call(c);
        (in_v ? call.v : call.k).set(at * d + 3, value);
        Call wide = cuda_test::wide_of(call);
        run_on_gpu(call), wide.run();
        for (std::int64_t i = 0; i < s * d; ++i) {
          const double o = call.o.get(i), right = wide.o.get(i);
          if (std::isfinite(right)) {
            ASSERT_NEAR(o, right, 1e-5) << value << " " << i;
          } else {
            ASSERT_EQ(std::isnan(o), std::isnan(right)) << value << " " << i;
            ASSERT_TRUE(std::isnan(o) || o == right) << value << " " << i;
          }
        }
      }
    }
  }
}

TEST(CudaForwardFloat32, ValuesNearTheLargest) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  const float most = std::numeric_limits<float>::max();
  Case c{.s_q = 70, .s_kv = 1000, .d = 64, .d_v = 64, .dtype = DType::float32};
  c.out_dtype = DType::float32, c.options.scale = 1e-30;
  Call call(c);
  for (int j = 0; j < 1000 * 64; ++j) call.v.set(j, j / 64 % 4 != 0 ? most : -most);
  for (int j = 0; j < 1000; ++j) call.k.set(64 * j, most);
  for (int i = 0; i < 70; ++i) call.q.set(64 * i, 0.0);
  run_on_gpu(call);
  for (int i = 0; i < 70 * 64; ++i) ASSERT_NEAR(call.o.get(i) / most, 0.5, 1e-5) << i;
}

// Largest error of softmax(q k^T / sqrt(d)) v by plain sums in float32.
double error_of_unfused(const Call& call, const Call& right) {
  const std::int64_t s_q = call.c.s_q, s_kv = call.c.s_kv, d = call.c.d;
  double largest = 0.0;
  std::vector<float> weights(static_cast<std::size_t>(s_kv));
  for (std::int64_t row = 0; row < s_q; ++row) {
    float m = -std::numeric_limits<float>::infinity(), l = 0.0F;
    for (std::int64_t key = 0; key < s_kv; ++key) {
      float s = 0.0F;
      for (std::int64_t i = 0; i < d; ++i) {
        s = std::fma(static_cast<float>(call.q.get(row * d + i)),
                     static_cast<float>(call.k.get(key * d + i)), s);
      }
      s /= std::sqrt(static_cast<float>(d));
      weights[static_cast<std::size_t>(key)] = s, m = std::max(m, s);
    }
    for (float& weight : weights) weight = std::exp(weight - m), l += weight;
    for (std::int64_t i = 0; i < d; ++i) {
      float o = 0.0F;
      for (std::int64_t key = 0; key < s_kv; ++key) {
        o = std::fma(weights[static_cast<std::size_t>(key)] / l,
                     static_cast<float>(call.v.get(key * d + i)), o);
      }
      largest = std::max(largest, std::abs(o - right.o.get(row * d + i)));
    }
  }
  return largest;
}

// Values of one sign: what is rounded away adds up over all keys.
TEST(CudaForwardFloat32, IsAsExactAsPlainSums) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  for (const std::int64_t d : {64, 128}) {
    for (const double shift : {0.0, 4.0}) {
      Case c{.s_q = 16, .s_kv = 8192, .d = d, .d_v = d, .dtype = DType::float32};
      c.out_dtype = DType::float32;
      Call call(c);
      for (std::int64_t i = 0; i < c.s_kv * d; ++i) call.v.set(i, call.v.get(i) + shift);
      Call wide = cuda_test::wide_of(call);
      run_on_gpu(call), wide.run();
      double error = 0.0;
      for (std::int64_t i = 0; i < c.s_q * d; ++i) {
        error = std::max(error, std::abs(call.o.get(i) - wide.o.get(i)));
      }
      EXPECT_LE(error, 2.0 * error_of_unfused(call, wide)) << d << " " << shift;
    }
  }
}

}  // namespace
}  // namespace onepass
