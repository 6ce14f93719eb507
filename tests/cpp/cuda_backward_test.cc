// attention_backward() on a GPU beside the float64 reference on the same values. Needs a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "cuda_backward_run.h"
#include "cuda_here.h"

namespace onepass {
namespace {

using cpu_test::BackwardCase;
using cpu_test::BackwardRun;
using cpu_test::Buffer;
using cpu_test::Case;
using cpu_test::cases_of_size_zero;
using cpu_test::text_of;

using cuda_test::run_on_gpu;

double worst(const std::vector<double>& got, const std::vector<double>& right) {
  double most = 0.0;
  for (std::size_t i = 0; i < right.size(); ++i) most = std::max(most, std::abs(got[i] - right[i]));
  return most;
}

// As a computation that stores its gradients in that dtype leaves them.
std::vector<double> stored(const std::vector<double>& values, DType dtype) {
  Buffer buffer(dtype, static_cast<std::int64_t>(values.size()));
  std::vector<double> out;
  for (std::size_t i = 0; i < values.size(); ++i) {
    buffer.set(static_cast<std::int64_t>(i), values[i]);
    out.push_back(buffer.get(static_cast<std::int64_t>(i)));
  }
  return out;
}

// float32 within 1e-5 of the largest value. 16-bit within twice a plain unfused computation in that
// dtype, and as the CPU's where `only_as_cpu`: the worst of a few numbers is no yardstick. Sums
// over all pairs, which may cancel: as the CPU's, or within twice a plain computation.
void expect_right(BackwardCase c, bool only_as_cpu = false) {
  const DType dtype = c.forward.dtype;
  const bool wide = dtype == DType::float32;
  BackwardRun run(c);
  run.call.run();
  run_on_gpu(run);
  const reference::Gradients want = run.expected(), plain = run.plain();
  const cpu_test::Errors errors = cpu_test::errors_of(run, want);
  EXPECT_LE(errors.dargs,
            std::max(wide ? 1e-5 : 5e-2, 2.0 * cpu_test::plain_dargs_error(run, want)))
      << text_of(c);
  const double of_largest = wide ? 1e-5 : dtype == DType::bfloat16 ? 2e-2 : 2e-3;
  EXPECT_LE(errors.dsink, of_largest) << text_of(c);
  if (wide || only_as_cpu) {
    EXPECT_LE(std::max({errors.dq, errors.dk, errors.dv}), of_largest)
        << text_of(c) << ": dq " << errors.dq << " dk " << errors.dk << " dv " << errors.dv;
    return;
  }
  const auto check = [&](const char* what, const Buffer& got, const std::vector<double>& right,
                         const std::vector<double>& of_plain) {
    EXPECT_LE(largest_error(got, right), 2.0 * worst(stored(of_plain, got.dtype()), right) + 1e-5)
        << what << " " << text_of(c);
  };
  check("dq", run.dq, want.dq.data, plain.dq.data);
  check("dk", run.dk, want.dk.data, plain.dk.data);
  check("dv", run.dv, want.dv.data, plain.dv.data);
}

// The same in every dtype that a GPU takes.
void expect_right_in_all(BackwardCase c) {
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    c.forward.dtype = c.forward.out_dtype = c.gradient_dtype = dtype;
    expect_right(c);
  }
}

TEST(CudaBackward, LengthsAroundTheTiles) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  for (const char* mask : {"full", "causal"}) {
    for (const std::int64_t s_q : {1, 31, 32, 33, 64, 65, 129}) {
      for (const std::int64_t s_kv : {1, 31, 32, 33, 64, 65, 129}) {
        for (const DType dtype : {DType::float32, DType::bfloat16}) {
          expect_right({.forward = {.b = 2,
                                    .h_q = 2,
                                    .h_kv = 2,
                                    .s_q = s_q,
                                    .s_kv = s_kv,
                                    .d = 24,
                                    .d_v = 40,
                                    .dtype = dtype,
                                    .out_dtype = dtype,
                                    .options = {.mask = mask}},
                        .gradient_dtype = dtype},
                       true);
        }
      }
    }
  }
}

TEST(CudaBackward, MoreTilesThanOneLook) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  for (const char* mask : {"window(100, 3) | row > 2150", "causal"}) {
    expect_right({.forward = {.s_q = 2200,
                              .s_kv = 140,
                              .d = 16,
                              .d_v = 16,
                              .dtype = DType::bfloat16,
                              .out_dtype = DType::bfloat16,
                              .options = {.mask = mask}},
                  .gradient_dtype = DType::bfloat16});
  }
}

class CudaBackwardDims : public testing::TestWithParam<std::pair<int, int>> {};

TEST_P(CudaBackwardDims, AreRight) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  const auto [d, d_v] = GetParam();
  expect_right_in_all(
      {.forward = {.b = 2, .h_q = 6, .h_kv = 2, .s_q = 41, .s_kv = 150, .d = d, .d_v = d_v}});
}

INSTANTIATE_TEST_SUITE_P(All, CudaBackwardDims,
                         testing::Values(std::pair{1, 1}, std::pair{8, 16}, std::pair{64, 64},
                                         std::pair{65, 63}, std::pair{80, 96}, std::pair{128, 128},
                                         std::pair{192, 128}, std::pair{256, 256},
                                         std::pair{320, 8}, std::pair{576, 512}));

TEST(CudaBackward, EmptySizesGiveZeros) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  for (const BackwardCase& c : cases_of_size_zero()) expect_right(c);
}

class CudaBackwardMask : public testing::TestWithParam<const char*> {};

TEST_P(CudaBackwardMask, WithSinksAndDlse) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  const char* const mask = GetParam();
  for (const auto& [s_q, s_kv] : {std::pair{150, 150}, {70, 333}, {333, 70}}) {
    expect_right({.forward = {.b = 2,
                              .h_q = 4,
                              .h_kv = 2,
                              .s_q = s_q,
                              .s_kv = s_kv,
                              .d = 40,
                              .d_v = 64,
                              .options = {.mask = mask},
                              .with_sink = true},
                  .with_dlse = true});
  }
  expect_right({.forward = {.h_q = 4,
                            .h_kv = 1,
                            .s_q = 150,
                            .s_kv = 333,
                            .d = 64,
                            .d_v = 64,
                            .dtype = DType::bfloat16,
                            .out_dtype = DType::bfloat16,
                            .options = {.mask = mask},
                            .with_sink = true},
                .with_dlse = true,
                .gradient_dtype = DType::bfloat16});
}

INSTANTIATE_TEST_SUITE_P(All, CudaBackwardMask,
                         testing::Values("causal", "window(20, 31)", "k % 3 != q % 2",
                                         "k >= 66 & row > 2", "sink_window(4, 9)", "k < 0"));

TEST(CudaBackward, PositionsAndScale) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  expect_right_in_all(
      {.forward = {.h_q = 2,
                   .h_kv = 2,
                   .s_q = 50,
                   .s_kv = 90,
                   .d = 32,
                   .d_v = 32,
                   .options = {.mask = "causal", .scale = -0.3, .align = Align::top_left}}});
}

TEST(CudaBackward, Dropout) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  for (const char* mask : {"full", "causal"}) {
    expect_right_in_all(
        {.forward = {
             .b = 2,
             .h_q = 2,
             .h_kv = 1,
             .s_q = 77,
             .s_kv = 133,
             .d = 64,
             .d_v = 64,
             .options = {.mask = mask,
                         .dropout = {.p = 0.3, .seed = 5, .offset = 9, .row0 = 32, .col0 = 16}}}});
  }
}

std::vector<float> some(std::size_t count, float from, float step) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = from + step * static_cast<float>(i * 37 % 101);
  }
  return values;
}

class CudaBackwardScore : public testing::TestWithParam<int> {};

constexpr int score_count = 14;

TEST_P(CudaBackwardScore, AndGradientsOfItsArrays) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  const std::vector<float> head = {0.3F, -0.2F, 0.1F, 0.5F},
                           values = some(2 * 4 * 50 * 70, 0, 0.01F);
  std::vector<std::int32_t> ids(120);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i * 7 % 19);
  const TensorView heads(head.data(), {4}), sequences(head.data(), {2, 1});
  const TensorView ids_view(ids.data(), DType::int32, {120}), table(values.data(), {64});
  const TensorView all(values.data(), {2, 4, 50, 70}), of_head(values.data(), {1, 4, 50, 70});
  const TensorView one(values.data(), {1, 1, 50, 70}), of_key(values.data(), {1, 4, 1, 70});
  const TensorView of_row(values.data(), {1, 1, 50, 1});
  const std::pair<const char*, std::vector<Argument>> scores[score_count] = {
      {"softcap(s, 2.0)", {}},
      {"s * abs(s) / 2.0", {}},
      {"where((q + k) % 3 == 0, s * 2.0, -inf)", {}},
      {"alibi(s, m)", {{"m", heads}}},
      {"s * m[h] + n[b, 0]", {{"m", heads}, {"n", sequences}}},
      {"bias(s, m)", {{"m", all}}},
      {"bias(s, m)", {{"m", of_head}}},
      {"bias(s, m)", {{"m", one}}},
      {"bias(s, m)", {{"m", of_key}}},
      {"bias(s, m)", {{"m", of_row}}},
      {"s + m[max(q - k, 0) % 64]", {{"m", table}}},
      {"s + m[q - k] * m[k]", {{"m", table}}},
      {"softcap(s + m[i[col] * 2], 2.0)", {{"m", table}, {"i", ids_view}}},
      {"s + 0.5 + 0.0 * floor(m[0])", {{"m", table}}}};
  const auto& [score, args] = scores[GetParam()];
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    const char* const mask = dtype == DType::float32 ? "full" : "causal";
    expect_right({.forward = {.b = 2,
                              .h_q = 4,
                              .h_kv = 2,
                              .s_q = 50,
                              .s_kv = 70,
                              .d = 16,
                              .d_v = 16,
                              .dtype = dtype,
                              .out_dtype = dtype,
                              .options = {.mask = mask, .score = score, .args = args},
                              .with_sink = true},
                  .gradient_dtype = dtype});
  }
}

INSTANTIATE_TEST_SUITE_P(All, CudaBackwardScore, testing::Range(0, score_count));

TEST(CudaBackward, LargeArraysWithoutACopyForEachChain) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  const std::vector<float> bias = some(100 * 1200 * 40, 0, 0.01F);
  for (const char* score : {"s + m[h, row, col]", "s + m[h, row, 1199 - col]"}) {
    expect_right(
        {.forward = {.h_q = 40,
                     .h_kv = 40,
                     .s_q = 100,
                     .s_kv = 1200,
                     .d = 8,
                     .d_v = 8,
                     .options = {.mask = "causal",
                                 .score = score,
                                 .args = {{"m", TensorView(bias.data(), {40, 100, 1200})}}}}});
  }
}

TEST(CudaBackward, ManySequences) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  expect_right({.forward = {.b = 70000, .s_q = 1, .s_kv = 2, .d = 2, .d_v = 2}});
}

TEST(CudaBackward, OnlyWhatIsAskedFor) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  for (int asked = 0; asked < 3; ++asked) {
    const BackwardCase c{.forward = {.h_q = 2, .s_q = 33, .s_kv = 40, .d = 16, .d_v = 16}};
    BackwardRun all(c), one(c);
    if (asked != 0) one.backward.dq = {};
    if (asked != 1) one.backward.dk = {};
    if (asked != 2) one.backward.dv = {};
    all.call.run(), one.call.run();
    run_on_gpu(all), run_on_gpu(one);
    const Buffer* got[] = {&one.dq, &one.dk, &one.dv};
    const Buffer* want[] = {&all.dq, &all.dk, &all.dv};
    EXPECT_EQ(got[asked]->bytes(), want[asked]->bytes());
  }
}

}  // namespace
}  // namespace onepass
