// The CPU backward on every instruction set of this machine, against the float64 reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <span>

#include "by_dtype.h"
#include "cpu_backward_case.h"

namespace onepass::cpu_test {
namespace {

constexpr ByDType tolerance{.float64 = 1e-13, .float32 = 1e-5, .bfloat16 = 2e-2, .float16 = 2e-3};

// Of sums over all pairs, whose terms may cancel, next to twice a plain computation's error.
double tolerance_of_sums(DType dtype) { return dtype == DType::float64 ? 1e-12 : 1e-5; }

void expect_right(BackwardCase c, bool every_isa = true) {
  if (c.forward.dtype == DType::float64) c.gradient_dtype = DType::float64;
  BackwardRun run(c);
  reference::Gradients want;
  double dargs_allowed = 0.0;
  for (const std::string& isa : isas_for(c.forward.dtype)) {
    if (!every_isa && isa != isas_for(c.forward.dtype).back()) continue;
    const ForcedIsa forced(isa.c_str());
    run.run();
    if (want.dq.shape[0] == 0) {
      want = run.expected();
      dargs_allowed =
          std::max(tolerance_of_sums(c.forward.dtype), 2.0 * plain_dargs_error(run, want));
    }
    Errors errors = errors_of(run, want);
    EXPECT_LE(errors.dargs, dargs_allowed) << isa << " " << text_of(c);
    errors.dargs = 0.0;
    EXPECT_LE(errors.largest(), tolerance(c.forward.dtype))
        << isa << " " << text_of(c) << ": dq " << errors.dq << " dk " << errors.dk << " dv "
        << errors.dv << " dsink " << errors.dsink << " dargs " << errors.dargs;
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
  std::vector<const Buffer*> buffers = {&run.dq, &run.dk, &run.dv};
  if (run.backward.dsink.given()) buffers.push_back(&run.dsink);
  for (const Buffer& one : run.dargs) buffers.push_back(&one);
  for (const Buffer* buffer : buffers) {
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

struct Arrays {
  std::vector<float> head = {0.3F, -0.2F, 0.1F, 0.5F}, table, wide, sequence = {0.2F, 0.7F};
  std::vector<std::int32_t> ids;
  TensorView head_view{head.data(), {4}}, sequence_view{sequence.data(), {2, 1}};
  Arrays() : table(64), wide(2 * 4 * 50 * 70), ids(120) {
    for (std::size_t i = 0; i < table.size(); ++i) table[i] = 0.01F * static_cast<float>(i % 17);
    for (std::size_t i = 0; i < wide.size(); ++i) wide[i] = 0.01F * static_cast<float>(i % 91);
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i * 7 % 19);
  }
};

TEST(CpuBackward, GradientsOfScoreArrays) {
  Arrays a;
  const auto part = [&](std::vector<std::int64_t> shape) {
    std::array<std::int64_t, 4> strides{};
    std::int64_t stride = 1;
    for (std::size_t dim = shape.size(); dim-- > 0;) strides[dim] = stride, stride *= shape[dim];
    return TensorView(a.wide.data(), DType::float32, shape, std::span(strides).first(shape.size()));
  };
  const TensorView ids(a.ids.data(), DType::int32, {120});
  const TensorView table(a.table.data(), {64});
  const std::pair<const char*, std::vector<Argument>> scores[] = {
      {"alibi(s, m)", {{"m", a.head_view}}},
      {"s * m[h] + n[b, 0]", {{"m", a.head_view}, {"n", a.sequence_view}}},
      {"bias(s, m)", {{"m", part({2, 4, 50, 70})}}},
      {"bias(s, m)", {{"m", part({1, 4, 50, 70})}}},
      {"bias(s, m)", {{"m", part({2, 1, 50, 70})}}},
      {"bias(s, m)", {{"m", part({1, 1, 50, 70})}}},
      {"bias(s, m)", {{"m", part({1, 4, 1, 70})}}},
      {"bias(s, m)", {{"m", part({1, 1, 50, 1})}}},
      {"s + m[max(q - k, 0) % 64]", {{"m", table}}},
      {"s + m[q - k] * m[k]", {{"m", table}}},
      {"softcap(s + m[i[col] * 2], 2.0) + c", {{"m", table}, {"i", ids}, {"c", part({})}}},
      {"s + 0.5", {{"m", table}}},
      {"bias(s, m) * n[h]", {{"m", part({1, 1, 50, 70})}, {"n", a.head_view}}}};
  for (auto [score, args] : scores) {
    if (std::string(score) == "s + 0.5") score = "s + 0.5 + 0.0 * floor(m[0])";
    for (const DType dtype : {DType::float32, DType::float64, DType::bfloat16}) {
      for (const char* mask : {"full", "causal"}) {
        expect_right({.forward = {.b = 2,
                                  .h_q = 4,
                                  .h_kv = 2,
                                  .s_q = 50,
                                  .s_kv = 70,
                                  .d = 8,
                                  .d_v = 8,
                                  .dtype = dtype,
                                  .out_dtype = dtype == DType::float64 ? dtype : DType::float32,
                                  .options = {.mask = mask, .score = score, .args = args},
                                  .with_sink = true}});
      }
    }
  }
}

TEST(CpuBackward, LargeScoreArraysWithoutACopyForEachItem) {
  std::vector<float> bias(100 * 1200);
  for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = 0.01F * static_cast<float>(i % 91);
  // Owned by key ranges; by nothing, as the index is no name.
  for (const char* score :
       {"s + m[row, col]", "s + m[row, col + 0 * q]", "s + m[row, 1199 - col]"}) {
    BackwardCase c{.forward = {.b = 2,
                               .h_q = 2,
                               .h_kv = 2,
                               .s_q = 100,
                               .s_kv = 1200,
                               .d = 8,
                               .d_v = 8,
                               .options = {.mask = "causal",
                                           .score = score,
                                           .args = {{"m", TensorView(bias.data(), {100, 1200})}}}}};
    expect_right(c, false);
    BackwardRun run(c);
    run.run(1);
    const std::vector<double> one = values_of(run);
    run.run(2);
    EXPECT_EQ(values_of(run), one) << score;
  }
}

TEST(CpuBackward, SixteenBitErrorsAreWithinTwiceAPlainComputations) {
  for (const DType dtype : {DType::bfloat16, DType::float16}) {
    for (const char* mask : {"full", "causal", "window(20, 0)"}) {
      BackwardRun run({.forward = {.b = 1,
                                   .h_q = 4,
                                   .h_kv = 2,
                                   .s_q = 100,
                                   .s_kv = 130,
                                   .d = 32,
                                   .d_v = 32,
                                   .dtype = dtype,
                                   .out_dtype = dtype,
                                   .options = {.mask = mask},
                                   .with_sink = true},
                       .with_dlse = true,
                       .gradient_dtype = dtype});
      const reference::Gradients want = run.expected(), plain = run.plain();
      const auto worst = [](const std::vector<double>& got, const std::vector<double>& right) {
        double most = 0.0;
        for (std::size_t i = 0; i < right.size(); ++i) {
          most = std::max(most, std::abs(got[i] - right[i]));
        }
        return most;
      };
      for (const std::string& isa : isas_for(dtype)) {
        const ForcedIsa forced(isa.c_str());
        run.run();
        const std::string where = isa + " " + name(dtype) + " " + mask;
        EXPECT_LE(largest_error(run.dq, want.dq.data),
                  2.0 * worst(plain.dq.data, want.dq.data) + 1e-5)
            << where;
        EXPECT_LE(largest_error(run.dk, want.dk.data),
                  2.0 * worst(plain.dk.data, want.dk.data) + 1e-5)
            << where;
        EXPECT_LE(largest_error(run.dv, want.dv.data),
                  2.0 * worst(plain.dv.data, want.dv.data) + 1e-5)
            << where;
        EXPECT_LE(largest_error(run.dsink, want.dsink), 2.0 * worst(plain.dsink, want.dsink) + 1e-5)
            << where;
      }
    }
  }
}

TEST(CpuBackward, PackedAndPartlyUsedSequences) {
  std::vector<std::int32_t> cu_q = {0, 5, 5, 70, 71, 80}, cu_k = {0, 9, 30, 30, 630, 650};
  std::vector<std::int32_t> used = {7, 0, 0, 600, 13};
  std::vector<float> slopes = {0.3F, 0.02F};
  for (const char* mask : {"full", "causal", "window(9, 3)"}) {
    for (const bool with_used : {false, true}) {
      for (const std::string& isa : isas_for(DType::float32)) {
        const ForcedIsa forced(isa.c_str());
        BackwardRun run({.forward = {.h_q = 2,
                                     .h_kv = 1,
                                     .s_q = 80,
                                     .s_kv = 650,
                                     .d = 8,
                                     .d_v = 12,
                                     .options = {.mask = mask,
                                                 .score = "alibi(s, m)",
                                                 .args = {{"m", TensorView(slopes.data(), {2})}},
                                                 .dropout = {.p = 0.2, .seed = 4}},
                                     .with_sink = true},
                         .with_dlse = true});
        pack(run, cu_q, cu_k);
        if (with_used) run.call.c.options.seqused_k = TensorView(used.data(), DType::int32, {5});
        run.run();
        const Errors errors = errors_of(run, run.expected());
        EXPECT_LE(errors.largest(), 1e-5) << isa << " " << mask << " used " << with_used << ": dq "
                                          << errors.dq << " dk " << errors.dk << " dv " << errors.dv
                                          << " dsink " << errors.dsink << " dargs " << errors.dargs;
        const std::vector<double> one = values_of(run);
        run.run(2);
        EXPECT_EQ(values_of(run), one) << isa << " " << mask;
      }
    }
  }
}

TEST(CpuBackward, EmptySizesGiveZeros) {
  for (const BackwardCase& c : cases_of_size_zero()) expect_right(c);
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
