// The tensor-core forward kernels of 16-bit calls beside the CPU in float64 on the same values.
// Needs a GPU; under ONEPASS_WITHOUT=cuda.forward.sm90 a Hopper runs the other one.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "cuda_forward_case.h"
#include "cuda_here.h"
#include "device_memory.h"

namespace onepass {
namespace {

using cpu_test::Call;
using cpu_test::Case;
using cuda_test::run_on_gpu;
using cuda_test::Values;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// The best of them: Hopper's, which takes no scale below 0, no empty sequence and no head dim
// beyond 256, or the other.
const char* best_kernel(const Case& c) {
  const char* const without = std::getenv("ONEPASS_WITHOUT");
  const bool takes = (c.options.scale.value_or(1.0) > 0.0 || !c.options.score.empty()) &&
                     c.s_kv > 0 && c.d <= 256 && c.d_v <= 256;
  return cuda_capabilities().value().sm == 90 && without == nullptr && takes ? "cuda.forward.sm90"
                                                                             : "cuda.forward.sm80";
}

void expect_right_by_it(const Case& c, DType dtype, const std::vector<Values>& arrays = {}) {
  cuda_test::expect_right_by(best_kernel(c), c, dtype, arrays);
}

// By head dim: each has its own tile.
class CudaForwardTilesByHeadDim : public testing::TestWithParam<std::int64_t> {};
INSTANTIATE_TEST_SUITE_P(HeadDims, CudaForwardTilesByHeadDim, testing::Values(64, 128, 256));

TEST(CudaForwardTiles, LengthsAroundTheTiles) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  for (const std::int64_t s_q : {1, 15, 63, 65, 127, 129, 300}) {
    for (const std::int64_t s_kv : {0, 1, 31, 64, 65, 129, 500}) {
      Case c{.b = 2, .h_q = 2, .h_kv = 2, .s_q = s_q, .s_kv = s_kv, .d = 64, .d_v = 64};
      expect_right_by_it(c, DType::bfloat16);
      c.options.mask = "causal";
      expect_right_by_it(c, DType::float16);
      c.options.align = Align::top_left;
      expect_right_by_it(c, DType::bfloat16);
    }
  }
}

TEST(CudaForwardTiles, HeadDimsAndGroups) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  for (const auto& [d, d_v] : {std::pair{8, 8},
                               {16, 32},
                               {24, 40},
                               {48, 80},
                               {72, 64},
                               {96, 96},
                               {112, 128},
                               {128, 128},
                               {128, 64},
                               {160, 152},
                               {192, 128},
                               {256, 256},
                               {64, 256},
                               {256, 8},
                               {48, 264},
                               {272, 16},
                               {320, 336},
                               {576, 512},
                               {576, 576}}) {
    Case c{.b = 2, .h_q = 6, .h_kv = 2, .s_q = 150, .s_kv = 270, .d = d, .d_v = d_v};
    expect_right_by_it(c, DType::bfloat16);
    c.options.mask = "causal", c.options.score = "softcap(s, 3)";
    c.options.dropout = {.p = 0.3, .seed = 7};
    expect_right_by_it(c, DType::float16);
  }
}

TEST_P(CudaForwardTilesByHeadDim, MasksOverManyTiles) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  Values keys{"keys", std::vector<float>(700), {700}};
  Values ids{"ids", std::vector<float>(700), {700}};
  for (std::size_t i = 0; i < 700; ++i) {
    keys.values[i] = static_cast<float>(i * 37 % 11) - 2.0F;
    ids.values[i] = static_cast<float>(i / 150);
  }
  const std::pair<const char*, std::vector<Values>> masks[] = {{"causal", {}},
                                                               {"window(100, 30)", {}},
                                                               {"window(70, -5)", {}},
                                                               {"k == 300", {}},
                                                               {"k > q + 1000", {}},
                                                               {"chunked_causal(96)", {}},
                                                               {"sink_window(4, 50)", {}},
                                                               {"prefix(170)", {}},
                                                               {"causal & h_kv == 1", {}},
                                                               {"causal & keys[col] > 0", {keys}},
                                                               {"ids[row] == ids[col]", {ids}},
                                                               {"q % 3 != 0", {}}};
  for (const auto& [mask, arrays] : masks) {
    const std::int64_t d = GetParam();
    Case c{.b = 1, .h_q = 4, .h_kv = 2, .s_q = 333, .s_kv = 700, .d = d, .d_v = d};
    c.options.mask = mask;
    expect_right_by_it(c, DType::bfloat16, arrays);
    c.with_sink = true, c.options.scale = -0.3;
    c.out_dtype = DType::float64;  // stands for a float32 output
    c.options.q_start = 400, c.options.k_start = 13;
    expect_right_by_it(c, DType::float16, arrays);
  }
}

TEST_P(CudaForwardTilesByHeadDim, ScoresOverManyTiles) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  Values slopes{"slopes", {0.5F, 0.25F, 0.125F, 0.0625F}, {4}};
  Values table{"table", std::vector<float>(150 * 200), {150, 200}};
  for (std::size_t i = 0; i < table.values.size(); ++i) {
    table.values[i] = static_cast<float>(i * 37 % 101) * 0.02F;
  }
  const std::pair<const char*, std::vector<Values>> scores[] = {
      {"softcap(s, 5)", {}},
      {"alibi(s, slopes)", {slopes}},
      {"s + table[row, col]", {table}},
      {"where(k % 7 == 3, -inf, s)", {}},
      {"where(k % 2 == 0, 1e9, -1e9)", {}},
      {"k % 5 - 1e7", {}},
      {"s * (1 + col)", {}},
      {"where(col == 5, exp(-s), s)", {}}};
  for (const auto& [score, arrays] : scores) {
    const std::int64_t d = GetParam();
    Case c{.b = 2, .h_q = 4, .h_kv = 2, .s_q = 150, .s_kv = 200, .d = d, .d_v = d};
    c.options.score = score;
    expect_right_by_it(c, DType::float16, arrays);
    c.options.mask = "causal";
    expect_right_by_it(c, DType::bfloat16, arrays);
  }
}

// Keys in pieces, o in columns of two launches.
TEST(CudaForwardTiles, MasksAndLengthsOfWideHeads) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  for (const std::int64_t d : {264, 384, 576}) {
    for (const std::int64_t s_kv : {0, 1, 33, 200}) {
      for (const char* mask : {"k > -1", "causal", "window(70, -5)", "q % 3 != 0"}) {
        Case c{.b = 2, .h_q = 2, .h_kv = 1, .s_q = 70, .s_kv = s_kv, .d = d, .d_v = d};
        c.options.mask = mask, c.options.scale = -0.05, c.with_sink = s_kv == 33;
        expect_right_by_it(c, DType::bfloat16);
      }
    }
  }
}

// The largest logit moves from tile to tile by less and by more than sums wait for.
TEST(CudaForwardTiles, MaximaThatGrowFromTileToTile) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  for (const double step : {0.02, 0.2, 40.0, -40.0, 3e4}) {
    for (const bool with_sink : {false, true}) {
      Case c{.s_q = 40, .s_kv = 640, .d = 8, .d_v = 8, .dtype = DType::bfloat16};
      c.out_dtype = DType::float32, c.with_sink = with_sink, c.options.scale = 1.0;
      Call call(c);
      for (int i = 0; i < 40 * 8; ++i) call.q.set(i, i % 8 == 0 ? 1.0 : 0.0);
      for (int j = 0; j < 640; ++j) call.k.set(8 * j, step * (j / 32));
      run_on_gpu(call);
      Call wide = cuda_test::wide_of(call);
      wide.run();
      for (int i = 0; i < 40 * 8; ++i) {
        ASSERT_NEAR(call.o.get(i), wide.o.get(i), 1e-2) << step << " " << i;
      }
      for (int i = 0; i < 40; ++i) {
        ASSERT_NEAR(call.lse.get(i), wide.lse.get(i), 1e-5 + 1e-6 * std::abs(wide.lse.get(i)))
            << step << " " << i;
      }
    }
  }
}

// A NaN in v under a weight of 0, hidden or dropped, stays out of o; a visible one reaches it.
TEST(CudaForwardTiles, NanAndInfinityStayWhereTheyAreVisible) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  const std::int64_t s = 150, at = 70;
  for (const std::int64_t d : {64, 128, 256, 576}) {
    for (const bool in_v : {true, false}) {
      for (const double value : {nan, std::numeric_limits<double>::infinity()}) {
        if (!in_v && !std::isnan(value)) continue;
        Case c{.s_q = s, .s_kv = s, .d = d, .d_v = d, .dtype = DType::bfloat16};
        c.out_dtype = DType::bfloat16, c.options.mask = "causal";
        Call call(c), clean(c);
        (in_v ? call.v : call.k).set(at * d + 3, value);
        run_on_gpu(call), run_on_gpu(clean);
        for (std::int64_t row = 0; row < s; ++row) {
          for (std::int64_t i = 0; i < d; ++i) {
            const double o = call.o.get(row * d + i), without = clean.o.get(row * d + i);
            const bool reached = row >= at && (!in_v || i == 3);
            ASSERT_EQ(std::isfinite(o), !reached) << d << " " << row << " " << i;
            if (!reached) {
              ASSERT_NEAR(o, without, row < at ? 2e-2 : 10.0);
            }
          }
          ASSERT_EQ(std::isnan(call.lse.get(row)), row >= at && !in_v) << row;
        }
      }
    }
  }
}

TEST(CudaForwardTiles, ValuesNearTheLargest) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  Case c{.s_q = 70, .s_kv = 1000, .d = 64, .d_v = 64, .dtype = DType::bfloat16};
  c.out_dtype = DType::float32, c.options.scale = 1e-30;
  Call call(c);
  for (int j = 0; j < 1000 * 64; ++j) call.v.set(j, j / 64 % 4 != 0 ? 0x1p127 : -0x1p127);
  run_on_gpu(call);
  for (int i = 0; i < 70 * 64; ++i) ASSERT_NEAR(call.o.get(i) / 0x1p127, 0.5, 1e-3) << i;
}

TEST(CudaForwardTiles, ManyHeadsAndRepeats) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  expect_right_by_it({.b = 70000, .h_q = 1, .h_kv = 1, .s_q = 1, .s_kv = 2, .d = 8, .d_v = 8},
                     DType::bfloat16);
  expect_right_by_it({.b = 1, .h_q = 70000, .h_kv = 35000, .s_q = 2, .s_kv = 3, .d = 8, .d_v = 8},
                     DType::float16);
  Case c{.b = 2, .h_q = 4, .h_kv = 2, .s_q = 500, .s_kv = 900, .d = 128, .d_v = 128};
  c.dtype = c.out_dtype = DType::bfloat16, c.options.mask = "causal";
  Call first(c), again(c);
  run_on_gpu(first);
  for (int i = 0; i < 10; ++i) {
    run_on_gpu(again);
    ASSERT_EQ(first.o.bytes(), again.o.bytes());
    ASSERT_EQ(first.lse.bytes(), again.lse.bytes());
  }
}

// (b, h, s, d) buffers seen as (b, s, h, d), and an o that leaves gaps.
TEST(CudaForwardTiles, Strides) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  const std::int64_t s = 100, h = 3, d = 40;
  Case c{.b = 2, .h_q = h, .h_kv = h, .s_q = s, .s_kv = s, .d = d, .d_v = d};
  c.dtype = c.out_dtype = DType::bfloat16;
  Call straight(c), turned(c);
  run_on_gpu(straight);
  for (TensorView* view : {&turned.q_view, &turned.k_view, &turned.v_view, &turned.o_view}) {
    view->strides = {h * s * d, d, s * d, 1};
  }
  turned.o_view.strides = {h * s * d, 1, s * d, s};  // one column after another
  const auto each = [&](const auto& visit) {
    for (std::int64_t b = 0; b < 2; ++b) {
      for (std::int64_t r = 0; r < s * h * d; ++r) visit(b, r / (h * d), r / d % h, r % d);
    }
  };
  each([&](auto b, auto row, auto head, auto i) {
    const auto from = ((b * s + row) * h + head) * d + i, to = ((b * h + head) * s + row) * d + i;
    turned.q.set(to, straight.q.get(from));
    turned.k.set(to, straight.k.get(from));
    turned.v.set(to, straight.v.get(from));
  });
  run_on_gpu(turned);
  each([&](auto b, auto row, auto head, auto i) {
    ASSERT_EQ(turned.o.get((b * h + head) * s * d + i * s + row),
              straight.o.get(((b * s + row) * h + head) * d + i));
  });
}

}  // namespace
}  // namespace onepass
