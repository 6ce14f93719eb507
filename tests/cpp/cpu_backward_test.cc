// The CPU backward on every instruction set of this machine, against the float64 reference.
#include <gtest/gtest.h>

#include <array>

#include "cpu_backward_case.h"

namespace onepass::cpu_test {
namespace {

double tolerance(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return 1e-13;
    case DType::float32:
      return 1e-5;
    case DType::bfloat16:
      return 2e-2;
    default:
      return 2e-3;
  }
}

std::string text_of(const BackwardCase& c) {
  const Case& f = c.forward;
  return std::string(name(f.dtype)) + " b=" + std::to_string(f.b) + " h=" + std::to_string(f.h_q) +
         "/" + std::to_string(f.h_kv) + " s=" + std::to_string(f.s_q) + "/" +
         std::to_string(f.s_kv) + " d=" + std::to_string(f.d) + "/" + std::to_string(f.d_v) +
         " mask=" + f.options.mask + " score=" + f.options.score;
}

void expect_right(BackwardCase c, bool every_isa = true) {
  if (c.forward.dtype == DType::float64) c.gradient_dtype = DType::float64;
  BackwardRun run(c);
  reference::Gradients want;
  for (const std::string& isa : isas_for(c.forward.dtype)) {
    if (!every_isa && isa != isas_for(c.forward.dtype).back()) continue;
    const ForcedIsa forced(isa.c_str());
    run.run();
    if (want.dq.shape[0] == 0) want = run.expected();
    const Errors errors = errors_of(run, want);
    EXPECT_LE(errors.largest(), tolerance(c.forward.dtype))
        << isa << " " << text_of(c) << ": dq " << errors.dq << " dk " << errors.dk << " dv "
        << errors.dv << " dsink " << errors.dsink;
  }
}

constexpr DType dtypes[] = {DType::float64, DType::float32, DType::bfloat16, DType::float16};

TEST(CpuBackward, LengthsAroundTheTiles) {
  const std::int64_t lengths[] = {1, 2, 3, 6, 7, 63, 64, 65, 127, 257, 513};
  for (const std::int64_t s_q : lengths) {
    for (const std::int64_t s_kv : lengths) {
      if (s_q * s_kv > 127 * 127 && s_q != 65 && s_kv != 65) continue;
      expect_right({.forward = {.s_q = s_q, .s_kv = s_kv, .d = 16, .d_v = 16}});
      expect_right(
          {.forward = {.s_q = s_q, .s_kv = s_kv, .d = 8, .d_v = 8, .options = {.mask = "causal"}}});
    }
  }
}

TEST(CpuBackward, EveryDtypeAndHeadDim) {
  const std::int64_t dims[] = {1, 3, 8, 16, 17, 40, 63, 64, 65, 80, 96, 100, 128, 192, 256, 576};
  for (const DType dtype : dtypes) {
    const DType out = dtype == DType::float64 ? dtype : DType::float32;
    for (const std::int64_t d : dims) {
      const std::int64_t d_v = d == 192 ? 128 : d == 576 ? 512 : d == 64 ? 1 : d;
      expect_right({.forward = {.h_q = 2,
                                .s_q = 9,
                                .s_kv = 75,
                                .d = d,
                                .d_v = d_v,
                                .dtype = dtype,
                                .out_dtype = out}});
    }
  }
}

TEST(CpuBackward, Masks) {
  const char* masks[] = {
      "causal",      "window(5, 0)",     "window(20, 31)",    "prefix(70)",
      "chunked(17)", "k % 3 != q % 2",   "k >= 66 & row > 2", "sink_window(4, 9)",
      "k < 0",       "q == k | k == 100"};
  for (const char* mask : masks) {
    for (const auto& [s_q, s_kv] : {std::pair{150, 150}, {70, 333}, {333, 70}}) {
      expect_right(
          {.forward = {
               .h_q = 2, .s_q = s_q, .s_kv = s_kv, .d = 12, .d_v = 20, .options = {.mask = mask}}});
    }
  }
}

TEST(CpuBackward, GroupedHeadsSinksAndDlse) {
  for (const DType dtype : dtypes) {
    for (const std::int64_t h_kv : {1, 2, 8}) {
      for (const char* mask : {"full", "causal", "k >= 66 & row > 2"}) {
        expect_right({.forward = {.b = 3,
                                  .h_q = 8,
                                  .h_kv = h_kv,
                                  .s_q = 5,
                                  .s_kv = 70,
                                  .d = 32,
                                  .d_v = 16,
                                  .dtype = dtype,
                                  .out_dtype = dtype == DType::float64 ? dtype : DType::float32,
                                  .options = {.mask = mask},
                                  .with_sink = true},
                      .with_dlse = true});
      }
    }
  }
}

TEST(CpuBackward, SeveralKeyRanges) {
  for (const char* mask : {"full", "causal", "window(100, 0)"}) {
    expect_right(
        {.forward = {
             .h_q = 2, .s_q = 700, .s_kv = 1300, .d = 8, .d_v = 8, .options = {.mask = mask}}});
  }
}

TEST(CpuBackward, Dropout) {
  for (const DType dtype : {DType::float32, DType::float64}) {
    for (const char* mask : {"full", "causal"}) {
      expect_right(
          {.forward = {.b = 2,
                       .h_q = 2,
                       .s_q = 77,
                       .s_kv = 133,
                       .d = 16,
                       .d_v = 16,
                       .dtype = dtype,
                       .out_dtype = dtype,
                       .options = {.mask = mask, .dropout = {.p = 0.3, .seed = 5, .offset = 9}}}});
    }
  }
}

std::vector<double> values_of(const BackwardRun& run) {
  std::vector<double> all;
  for (const Buffer* buffer : {&run.dq, &run.dk, &run.dv, &run.dsink}) {
    const auto count =
        static_cast<std::int64_t>(buffer->bytes().size()) / size_bytes(buffer->dtype());
    for (std::int64_t i = 0; i < count; ++i) all.push_back(buffer->get(i));
  }
  return all;
}

TEST(CpuBackward, ThreadsChangeNoBit) {
  const Case shapes[] = {
      {.b = 2, .h_q = 4, .h_kv = 2, .s_q = 211, .s_kv = 1400, .d = 32, .d_v = 48},
      {.b = 1, .h_q = 6, .h_kv = 1, .s_q = 600, .s_kv = 300, .d = 40, .d_v = 40}};
  for (Case c : shapes) {
    for (const char* mask : {"full", "causal", "window(90, 20) | k < 4"}) {
      c.options.mask = mask;
      c.options.score = "softcap(s, 3.0) - 0.01 * abs(q - k)";
      c.options.dropout = {.p = 0.1, .seed = 3};
      c.with_sink = true;
      for (const std::string& isa : isas_for(c.dtype)) {
        const ForcedIsa forced(isa.c_str());
        BackwardRun run({.forward = c, .with_dlse = true});
        run.run(1);
        const std::vector<double> one = values_of(run);
        for (const int threads : {2, 3, 2}) {
          run.run(threads);
          EXPECT_EQ(values_of(run), one) << isa << " " << mask << " threads " << threads;
        }
      }
    }
  }
}

TEST(CpuBackward, ScoresAndTheirSlopes) {
  std::vector<float> slopes = {0.3F, 0.02F}, bias(2 * 90 * 130);
  for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(i * 37 % 101) / 50.0F;
  const TensorView slopes_view(slopes.data(), {2}), bias_view(bias.data(), {1, 2, 90, 130});
  const std::pair<const char*, std::vector<Argument>> scores[] = {
      {"softcap(s, 2.0)", {}},
      {"alibi(s, m)", {{"m", slopes_view}}},
      {"bias(s, m)", {{"m", bias_view}}},
      {"s * abs(s) / 2.0", {}},
      {"where((q + k) % 3 == 0, s * 2.0, -inf)", {}},
      {"log(1.0 + exp(s)) * m[h]", {{"m", slopes_view}}},
      {"0.25", {}}};
  for (const auto& [score, args] : scores) {
    for (const DType dtype : {DType::float32, DType::float64, DType::bfloat16}) {
      for (const char* mask : {"full", "causal"}) {
        expect_right({.forward = {.h_q = 2,
                                  .s_q = 90,
                                  .s_kv = 130,
                                  .d = 16,
                                  .d_v = 24,
                                  .dtype = dtype,
                                  .out_dtype = dtype == DType::float64 ? dtype : DType::float32,
                                  .options = {.mask = mask, .score = score, .args = args}}});
      }
    }
  }
}

TEST(CpuBackward, EmptySizesGiveZeros) {
  for (const auto& [b, s_q, s_kv, d, d_v] : {std::array<std::int64_t, 5>{0, 4, 4, 8, 8},
                                             {1, 0, 5, 8, 8},
                                             {1, 5, 0, 8, 8},
                                             {1, 0, 0, 8, 8},
                                             {1, 4, 5, 0, 8},
                                             {1, 4, 5, 8, 0}}) {
    expect_right(
        {.forward =
             {.b = b, .h_q = 2, .s_q = s_q, .s_kv = s_kv, .d = d, .d_v = d_v, .with_sink = true},
         .with_dlse = true});
  }
}

TEST(CpuBackward, MaskOfDropoutIsTheReferences) {
  const Dropout dropout{.p = 0.4, .seed = 11, .offset = 3, .row0 = 32, .col0 = 16};
  std::vector<std::uint8_t> mask(2 * 3 * 37 * 45, 9);
  dropout_mask({mask.data(), DType::boolean, {2, 3, 37, 45}}, dropout);
  const reference::Dropout same{dropout.p, dropout.seed, dropout.offset, dropout.row0,
                                dropout.col0};
  EXPECT_EQ(mask, reference::dropout_mask(same, 2, 3, 37, 45));
}

}  // namespace
}  // namespace onepass::cpu_test
