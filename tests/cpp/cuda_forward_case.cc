#include "cuda_forward_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>

#include "cuda_here.h"
#include "device_memory.h"

namespace onepass::cuda_test {

using cpu_test::Buffer;
using cpu_test::Call;
using cpu_test::Case;

namespace {

TensorView array_view(const void* data, const Values& values, Device device) {
  return {data, DType::float32, values.shape, {}, device};
}

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

// For values up to 4. Weights may be rounded to the inputs' dtype, by 2^-8 or 2^-11 of each, and a
// 16-bit output is rounded once more.
double tolerance(DType dtype, DType out) {
  if (dtype == DType::float32) return 1e-5;
  const double of_weights = 4 * (dtype == DType::bfloat16 ? 0x1p-8 : 0x1p-11);
  return out == DType::float32 ? of_weights : dtype == DType::bfloat16 ? 2e-2 : 2e-3;
}

// At least 1: a tolerance is a share of the largest value that should come out.
double largest_finite(const Buffer& buffer) {
  double largest = 1.0;
  for (const double value : values_of(buffer)) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  return largest;
}

}  // namespace

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

void expect_right(const Case& given, DType dtype, const std::vector<Values>& arrays) {
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
  EXPECT_LE(largest_error(call.o, values_of(wide.o)), tolerance(dtype, c.out_dtype)) << where;
  // 16-bit kernels take the score's exp, log and division approximately.
  const double of_largest = dtype == DType::float32 || c.options.score.empty() ? 1e-5 : 1e-4;
  EXPECT_LE(largest_error(call.lse, values_of(wide.lse)), of_largest * largest_finite(wide.lse))
      << where;
}

void expect_right_by(const char* name, const Case& given, DType dtype,
                     const std::vector<Values>& arrays) {
  const Call call(given);
  const auto on_gpu = [&](TensorView view) {
    view.data = nullptr, view.device = gpu, view.dtype = dtype;
    return view;
  };
  Attention options = given.options;
  for (const Values& one : arrays) {
    options.args.push_back({one.name, array_view(nullptr, one, gpu)});
  }
  EXPECT_EQ(plan(on_gpu(call.q_view), on_gpu(call.k_view), on_gpu(call.v_view), on_gpu(call.o_view),
                 options)
                .kernel,
            name);
  expect_right(given, dtype, arrays);
}

void expect_right(const Case& given, const std::vector<Values>& arrays) {
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    expect_right(given, dtype, arrays);
  }
}

}  // namespace onepass::cuda_test
