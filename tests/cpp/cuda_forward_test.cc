// attention() on a GPU beside the CPU in float64 on the same values. Needs a GPU.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cuda_forward_case.h"
#include "cuda_here.h"
#include "device_memory.h"

namespace onepass {
namespace {

using cpu_test::Buffer;
using cpu_test::Call;
using cpu_test::Case;
using cuda_test::expect_right;
using cuda_test::run_on_gpu;
using cuda_test::Values;

TEST(CudaForward, LengthsAroundTheTiles) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  for (const std::int64_t s_q : {0, 1, 15, 16, 17, 65}) {
    for (const std::int64_t s_kv : {0, 1, 31, 32, 33, 127}) {
      const Case c{.b = 2, .h_q = 2, .h_kv = 2, .s_q = s_q, .s_kv = s_kv, .d = 24, .d_v = 40};
      expect_right(c);
      Case causal = c;
      causal.options.mask = "causal";
      expect_right(causal);
    }
  }
}

TEST(CudaForward, HeadDimsAndGroups) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  for (const auto& [d, d_v] :
       {std::pair{1, 1}, {64, 64}, {65, 63}, {128, 129}, {576, 512}, {8, 576}, {0, 5}, {5, 0}}) {
    expect_right({.b = 2, .h_q = 6, .h_kv = 2, .s_q = 20, .s_kv = 70, .d = d, .d_v = d_v});
  }
}

std::vector<float> some(std::size_t count, float from, float step) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = from + step * static_cast<float>(i * 37 % 101);
  return values;
}

TEST(CudaForward, MasksAndScoresOfTheLanguage) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  const Values bias{"table", some(50 * 90, -1.0f, 0.02f), {1, 1, 50, 90}};
  const Values slopes{"slopes", some(4, 0.1f, 0.01f), {4}};
  const Values half{"keys", some(90, -0.5f, 0.01f), {90}};
  const std::vector<std::pair<std::pair<std::string, std::string>, std::vector<Values>>> all = {
      {{"window(20, 3)", ""}, {}},
      {{"k % 3 != 1", "softcap(s, 5)"}, {}},
      {{"false", ""}, {}},
      {{"q > 20", "alibi(s, slopes)"}, {slopes}},
      {{"full", "bias(s, table)"}, {bias}},
      {{"sink_window(4, 9)", "s + keys[col] * h"}, {half}},
      {{"keys[col] > 0 | row == 3", "where(k < q, s, -inf)"}, {half}},
      {{"causal", "where(col == 5, exp(-s), s)"}, {}},
  };
  for (const auto& [texts, arrays] : all) {
    Case c{.b = 2, .h_q = 4, .h_kv = 2, .s_q = 50, .s_kv = 90, .d = 32, .d_v = 48};
    c.options.mask = texts.first, c.options.score = texts.second;
    expect_right(c, arrays);
    c.with_sink = true;
    c.options.align = Align::top_left;
    expect_right(c, arrays);
    c.options.q_start = 31, c.options.k_start = -7;
    c.options.scale = -0.3;
    c.out_dtype = DType::float64;  // stands for a float32 output
    expect_right(c, arrays);
  }
}

TEST(CudaForward, DropoutKeepsWhatTheCpuKeeps) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  Case c{.b = 2, .h_q = 2, .h_kv = 1, .s_q = 40, .s_kv = 75, .d = 16, .d_v = 16};
  c.options.dropout = {.p = 0.4, .seed = 99, .offset = 5, .row0 = 32, .col0 = 16};
  c.out_dtype = DType::float64;
  expect_right(c);
  c.options.mask = "causal";
  expect_right(c);
}

TEST(CudaForward, NanStaysWhereItIsVisible) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  const std::int64_t s = 50, d = 8;
  Case c{.s_q = s, .s_kv = s, .d = d, .d_v = d};
  c.options.mask = "causal";
  for (const bool in_v : {true, false}) {
    Call call(c);
    Buffer& poisoned = in_v ? call.v : call.k;
    poisoned.set(20 * d + 3, std::numeric_limits<double>::quiet_NaN());
    run_on_gpu(call, {});
    for (std::int64_t row = 0; row < s; ++row) {
      for (std::int64_t i = 0; i < d; ++i) {
        const bool reached = row >= 20 && (!in_v || i == 3);
        EXPECT_EQ(std::isnan(call.o.get(row * d + i)), reached) << row << " " << i;
      }
      EXPECT_EQ(std::isnan(call.lse.get(row)), row >= 20 && !in_v) << row;
    }
  }
}

TEST(CudaForward, AnyStrides) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  const Case c{.b = 2, .h_q = 3, .h_kv = 3, .s_q = 37, .s_kv = 37, .d = 20, .d_v = 20};
  Call straight(c), turned(c);
  run_on_gpu(straight, {});
  // (b, h, s, d) buffers seen as (b, s, h, d); q backwards along s and d, o backwards along h.
  for (TensorView* view : {&turned.q_view, &turned.k_view, &turned.v_view, &turned.o_view}) {
    view->strides = {3 * 37 * 20, 20, 37 * 20, 1};
  }
  const auto place = [](std::int64_t b, std::int64_t s, std::int64_t h, std::int64_t i) {
    return ((b * 3 + h) * 37 + s) * 20 + i;
  };
  const auto each = [&](const auto& visit) {
    for (std::int64_t at = 0; at < 2 * 37 * 3 * 20; ++at) {
      visit(at, at / (37 * 60), at / 60 % 37, at / 20 % 3, at % 20);
    }
  };
  each([&](auto at, auto b, auto s, auto h, auto i) {
    turned.q.set(place(b, s, h, i), straight.q.get(at));
    turned.k.set(place(b, s, h, i), straight.k.get(at));
    turned.v.set(place(b, s, h, i), straight.v.get(at));
  });
  run_on_gpu(turned, {});
  each([&](auto at, auto b, auto s, auto h, auto i) {
    ASSERT_EQ(turned.o.get(place(b, s, h, i)), straight.o.get(at)) << at;
  });
}

TEST(CudaForward, ManySequencesAndRepeats) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  const Case c{.b = 70000, .h_q = 1, .h_kv = 1, .s_q = 1, .s_kv = 2, .d = 2, .d_v = 2};
  expect_right(c);
  Case again{.b = 1, .h_q = 2, .h_kv = 2, .s_q = 100, .s_kv = 300, .d = 64, .d_v = 64};
  Call first(again), second(again);
  run_on_gpu(first, {});
  for (int i = 0; i < 5; ++i) {
    run_on_gpu(second, {});
    ASSERT_EQ(first.o.bytes(), second.o.bytes());
  }
}

TEST(CudaForward, WhatItDoesNotTakeIsRefusedByName) {
  ONEPASS_NEED_GPU;
  const TensorView q(nullptr, DType::float64, {1, 4, 1, 8}, gpu);
  try {
    plan(q, q, q, q);
    FAIL() << "planned";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Code::not_supported);
    EXPECT_NE(std::string(error.what()).find("cuda.forward.generic: dtype: float64"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace onepass
