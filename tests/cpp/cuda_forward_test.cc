// attention() on a GPU beside the CPU in float64 on the same values. Needs a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>

#include "cpu_case.h"
#include "cuda/compile_log.h"
#include "cuda/compiler.h"
#include "cuda/forward_kernels.h"
#include "cuda_here.h"
#include "device_memory.h"

namespace onepass {
namespace {

using cpu_test::Buffer;
using cpu_test::Call;
using cpu_test::Case;

/// Array arguments of a call: name, values, shape.
struct Values {
  std::string name;
  std::vector<float> values;
  std::vector<std::int64_t> shape;
};

TensorView array_view(const void* data, const Values& values, Device device) {
  return {data, DType::float32, values.shape, {}, device};
}

constexpr Device gpu{Device::Kind::cuda, 0};
constexpr std::size_t guard_bytes = 64;

DeviceMemory copy_of(const Buffer& buffer) {
  std::vector<unsigned char> bytes = buffer.bytes();
  bytes.resize(bytes.size() + guard_bytes);  // never empty
  return DeviceMemory(bytes);
}

// Poisoned with NaN, with bytes after it that must stay.
DeviceMemory output_like(const Buffer& buffer) {
  return DeviceMemory(std::vector<unsigned char>(buffer.bytes().size() + guard_bytes, 0xff));
}

void read_back(const DeviceMemory& memory, Buffer& buffer) {
  const std::vector<unsigned char> bytes = memory.values<unsigned char>();
  const std::size_t size = buffer.bytes().size();
  if (size > 0) std::memcpy(buffer.data(), bytes.data(), size);
  for (std::size_t i = size; i < bytes.size(); ++i) ASSERT_EQ(bytes[i], 0xff) << "written beyond";
}

TensorView on(const DeviceMemory& memory, TensorView view) {
  view.data = memory.data(), view.device = gpu;
  return view;
}

void run_on_gpu(Call& call, const std::vector<Values>& arrays) {
  const DeviceMemory q = copy_of(call.q), k = copy_of(call.k), v = copy_of(call.v);
  const DeviceMemory sink = copy_of(call.sink), o = output_like(call.o),
                     lse = output_like(call.lse);
  std::deque<DeviceMemory> kept;
  Attention options = call.c.options;
  for (const Values& one : arrays) {
    kept.emplace_back(one.values);
    options.args.push_back({one.name, array_view(kept.back().data(), one, gpu)});
  }
  options.lse = on(lse, call.lse_view);
  if (call.c.with_sink) options.sink = on(sink, call.sink_view);
  attention(on(q, call.q_view), on(k, call.k_view), on(v, call.v_view), on(o, call.o_view),
            options);
  read_back(o, call.o), read_back(lse, call.lse);
}

std::vector<double> values_of(const Buffer& buffer) {
  std::vector<double> all(buffer.bytes().size() /
                          static_cast<std::size_t>(size_bytes(buffer.dtype())));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = buffer.get(static_cast<std::int64_t>(i));
  return all;
}

void copy(const Buffer& from, Buffer& to) {
  const std::vector<double> values = values_of(from);
  for (std::size_t i = 0; i < values.size(); ++i) to.set(static_cast<std::int64_t>(i), values[i]);
}

// The same call on the CPU in float64.
Call wide_of(const Call& call, const std::vector<Values>& arrays) {
  Case c = call.c;
  c.dtype = c.out_dtype = DType::float64;
  for (const Values& one : arrays) {
    c.options.args.push_back({one.name, array_view(one.values.data(), one, {})});
  }
  Call wide(c);
  copy(call.q, wide.q), copy(call.k, wide.k), copy(call.v, wide.v), copy(call.sink, wide.sink);
  return wide;
}

double tolerance(DType out) {
  if (out == DType::bfloat16) return 2e-2;  // outputs up to 4 rounded to 8 bits
  return out == DType::float16 ? 2e-3 : 1e-5;
}

// At least 1: a tolerance is a share of the largest value that should come out.
double largest_finite(const Buffer& buffer) {
  double largest = 1.0;
  for (const double value : values_of(buffer)) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  return largest;
}

void expect_right(const Case& given, const std::vector<Values>& arrays = {}) {
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    Case c = given;
    c.dtype = dtype;
    c.out_dtype = given.out_dtype == DType::float64 ? DType::float32 : dtype;
    Call call(c);
    run_on_gpu(call, arrays);
    Call wide = wide_of(call, arrays);
    wide.run();
    const std::string where = c.options.mask + " " + c.options.score + " " + name(dtype) +
                              " s=" + std::to_string(c.s_q) + "/" + std::to_string(c.s_kv) +
                              " d=" + std::to_string(c.d) + "/" + std::to_string(c.d_v);
    EXPECT_LE(largest_error(call.o, values_of(wide.o)), tolerance(c.out_dtype)) << where;
    // 16-bit kernels take the score's exp, log and division approximately.
    const double of_largest = dtype == DType::float32 || c.options.score.empty() ? 1e-5 : 1e-4;
    EXPECT_LE(largest_error(call.lse, values_of(wide.lse)), of_largest * largest_finite(wide.lse))
        << where;
  }
}

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
