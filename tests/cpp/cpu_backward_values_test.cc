// The CPU backward where values or layouts are unusual: NaN that takes no part, strides, large
// logits.
#include <gtest/gtest.h>

#include <algorithm>

#include "cpu_backward_case.h"

namespace onepass::cpu_test {
namespace {

const double nan_value = std::nan("");

// Writes NaN into the rows of one key or query of a (b, s, h, d) buffer.
void spoil(Buffer& buffer, const TensorView& view, std::int64_t s) {
  for (std::int64_t b = 0; b < view.shape[0]; ++b) {
    for (std::int64_t h = 0; h < view.shape[2]; ++h) {
      for (std::int64_t i = 0; i < view.shape[3]; ++i) {
        buffer.set(b * view.strides[0] + s * view.strides[1] + h * view.strides[2] + i, nan_value);
      }
    }
  }
}

void expect_right(BackwardRun& run, const std::string& what) {
  const reference::Gradients want = run.expected();
  for (const std::string& isa : isas_for(run.call.c.dtype)) {
    const ForcedIsa forced(isa.c_str());
    run.run();
    const Errors errors = errors_of(run, want);
    EXPECT_LE(errors.largest(), run.call.c.dtype == DType::float64 ? 1e-12 : 1e-5)
        << what << " " << isa << ": dq " << errors.dq << " dk " << errors.dk << " dv " << errors.dv
        << " dsink " << errors.dsink;
  }
}

std::vector<double> numbers(const Buffer& buffer) {
  std::vector<double> all;
  const auto count = static_cast<std::int64_t>(buffer.bytes().size()) / size_bytes(buffer.dtype());
  for (std::int64_t i = 0; i < count; ++i) all.push_back(buffer.get(i));
  return all;
}

BackwardCase case_of(const char* mask, const char* score = "", double dropped = 0.0) {
  return {
      .forward = {.h_q = 2,
                  .h_kv = 1,
                  .s_q = 70,
                  .s_kv = 100,
                  .d = 12,
                  .d_v = 20,
                  .options = {.mask = mask, .score = score, .dropout = {.p = dropped, .seed = 2}},
                  .with_sink = true},
      .with_dlse = true};
}

TEST(CpuBackwardValues, NanInHiddenKeysChangesNoBit) {
  for (const char* score : {"", "softcap(s, 4.0)"}) {
    for (const char* mask : {"k != 5 & k < 97", "k != 5 & k < 97 & causal"}) {
      for (const std::string& isa : isas_for(DType::float32)) {
        const ForcedIsa forced(isa.c_str());
        BackwardRun clean(case_of(mask, score)), dirty(case_of(mask, score));
        for (const std::int64_t key : {5, 97, 99}) {
          spoil(dirty.call.k, dirty.call.k_view, key);
          spoil(dirty.call.v, dirty.call.v_view, key);
        }
        clean.run();
        dirty.run();
        EXPECT_EQ(numbers(dirty.dq), numbers(clean.dq)) << isa << mask;
        EXPECT_EQ(numbers(dirty.dk), numbers(clean.dk)) << isa << mask;
        EXPECT_EQ(numbers(dirty.dv), numbers(clean.dv)) << isa << mask;
        for (std::int64_t i = 0; i < 12; ++i) EXPECT_EQ(dirty.dk.get(5 * 12 + i), 0.0);
        for (std::int64_t i = 0; i < 20; ++i) EXPECT_EQ(dirty.dv.get(5 * 20 + i), 0.0);
      }
    }
  }
}

TEST(CpuBackwardValues, NanInRowsWithoutKeysChangesNoBit) {
  for (const std::string& isa : isas_for(DType::float32)) {
    const ForcedIsa forced(isa.c_str());
    BackwardRun clean(case_of("row != 3")), dirty(case_of("row != 3"));
    spoil(dirty.call.q, dirty.call.q_view, 3);
    spoil(dirty.dout, dirty.backward.dout, 3);
    clean.run();
    dirty.run();
    EXPECT_EQ(numbers(dirty.dq), numbers(clean.dq)) << isa;
    EXPECT_EQ(numbers(dirty.dk), numbers(clean.dk)) << isa;
    EXPECT_EQ(numbers(dirty.dv), numbers(clean.dv)) << isa;
    EXPECT_EQ(numbers(dirty.dsink), numbers(clean.dsink)) << isa;
    for (std::int64_t i = 0; i < 2 * 12; ++i) EXPECT_EQ(dirty.dq.get(3 * 2 * 12 + i), 0.0);
  }
}

TEST(CpuBackwardValues, NanReachesWhatSeesIt) {
  // Rows from 40 on see key 60: their gradients are NaN, and so are those of every key they see.
  for (const char* mask : {"k != 60 | row >= 40", "(k != 60 & k >= 10) | (row >= 40 & k >= 50)"}) {
    BackwardRun keys(case_of(mask));
    spoil(keys.call.k, keys.call.k_view, 60);
    expect_right(keys, mask);
    BackwardRun values(case_of(mask));
    spoil(values.call.v, values.call.v_view, 60);
    expect_right(values, mask);
    BackwardRun infinite(case_of(mask));
    infinite.call.v.set(60 * 20 + 3, HUGE_VAL);
    expect_right(infinite, mask);
  }
}

TEST(CpuBackwardValues, NanInAValueSparesTheRowsThatDroppedIt) {
  BackwardRun run(case_of("full", "", 0.5));
  spoil(run.call.v, run.call.v_view, 60);
  expect_right(run, "dropped");
}

// Moves a tensor into a buffer of other strides with NaN between its elements.
void spread(Buffer& buffer, TensorView& view, bool heads_first, bool backwards) {
  const std::int64_t b = view.shape[0], s = view.shape[1], h = view.shape[2], d = view.shape[3];
  const std::int64_t width = d + 3;
  Buffer wide(buffer.dtype(), b * s * h * width + 1);
  for (std::int64_t i = 0; i < b * s * h * width + 1; ++i) wide.set(i, nan_value);
  TensorView moved = view;
  moved.strides = heads_first ? std::array{h * s * width, width, s * width, std::int64_t{1}}
                              : std::array{s * h * width, h * width, width, std::int64_t{1}};
  std::int64_t first = 0;
  if (backwards) {
    first = (s - 1) * moved.strides[1];
    moved.strides[1] = -moved.strides[1];
  }
  for (std::int64_t i = 0; i < view.elements(); ++i) {
    const std::int64_t at[] = {i / d / h / s, i / d / h % s, i / d % h, i % d};
    std::int64_t from = 0, to = first;
    for (std::size_t dim = 0; dim < 4; ++dim) {
      from += at[dim] * view.strides[dim], to += at[dim] * moved.strides[dim];
    }
    wide.set(to, buffer.get(from));
  }
  buffer = wide;
  moved.data = static_cast<std::byte*>(buffer.data()) + first * size_bytes(buffer.dtype());
  view = moved;
}

TEST(CpuBackwardValues, StridesChangeNoBitAndGapsStay) {
  for (const bool heads_first : {false, true}) {
    for (const bool backwards : {false, true}) {
      for (const std::string& isa : isas_for(DType::float32)) {
        const ForcedIsa forced(isa.c_str());
        BackwardRun plain(case_of("causal")), other(case_of("causal"));
        const auto move = [&](Buffer& buffer, TensorView& view) {
          spread(buffer, view, heads_first, backwards);
        };
        move(other.call.q, other.call.q_view);
        move(other.call.k, other.call.k_view);
        move(other.call.v, other.call.v_view);
        move(other.dout, other.backward.dout);
        move(other.dq, other.backward.dq);
        move(other.dk, other.backward.dk);
        move(other.dv, other.backward.dv);
        plain.run();
        other.run();
        const auto same = [](const Buffer& wide, const TensorView& view, const Buffer& dense) {
          std::int64_t written = 0;
          for (const double x : numbers(wide)) written += !std::isnan(x);
          EXPECT_EQ(written, view.elements());
          EXPECT_EQ(reference_tensor(wide, view).data, numbers(dense));
        };
        same(other.dq, other.backward.dq, plain.dq);
        same(other.dk, other.backward.dk, plain.dk);
        same(other.dv, other.backward.dv, plain.dv);
      }
    }
  }
}

// Logits of the usual size, made of a scale that float32 cannot hold.
TEST(CpuBackwardValues, ScalesBeyondTheTypeHaveRightGradients) {
  for (const double scale : {1e39, -1e60, 1e-39, 1e-45, -1e-70}) {
    for (const char* score : {"", "softcap(s, 4.0)"}) {
      BackwardCase c = case_of("causal", score);
      c.forward.options.scale = scale;
      BackwardRun run(c);
      for (Buffer* buffer : {&run.call.q, &run.call.k}) {
        const std::vector<double> values = numbers(*buffer);
        for (std::size_t i = 0; i < values.size(); ++i) {
          const double size = 0.5 / std::sqrt(std::abs(scale));
          buffer->set(static_cast<std::int64_t>(i), values[i] * size);
        }
      }
      expect_right(run, "scale " + std::to_string(std::log10(std::abs(scale))) + score);
    }
  }
}

TEST(CpuBackwardValues, AGradientOfOnesWithStrideZero) {
  BackwardRun run(case_of("causal"));
  run.dout.set(0, 1.0);
  run.backward.dout.strides = {0, 0, 0, 0};
  expect_right(run, "ones");
}

TEST(CpuBackwardValues, LargeLogitsStayFinite) {
  for (const double scale : {30.0, 1e4, 1e9, -1e4, 0.0}) {
    for (const DType dtype : {DType::float32, DType::float64}) {
      BackwardCase c = case_of("causal");
      c.forward.dtype = c.forward.out_dtype = dtype;
      c.gradient_dtype = dtype;
      c.forward.options.scale = scale;
      for (const std::string& isa : isas_for(dtype)) {
        const ForcedIsa forced(isa.c_str());
        BackwardRun run(c);
        run.run();
        for (const Buffer* buffer : {&run.dq, &run.dk, &run.dv, &run.dsink}) {
          for (const double x : numbers(*buffer)) ASSERT_TRUE(std::isfinite(x)) << isa << scale;
        }
      }
    }
  }
}

// Channel 0 alone makes the logits, exactly: size for every other key, -size for the rest.
BackwardCase one_channel(const char* mask, double dropped, bool with_sink, DType dtype) {
  BackwardCase c = case_of(mask, "", dropped);
  c.forward.dtype = c.forward.out_dtype = c.gradient_dtype = dtype;
  c.forward.with_sink = with_sink;
  c.forward.options.scale = -0.5;
  return c;
}

TEST(CpuBackwardValues, LogitsOfEverySizeHaveRightGradients) {
  for (double size = 10; size <= 1e31; size *= 10) {
    for (const DType dtype : {DType::float32, DType::float64}) {
      for (const auto& [mask, dropped] : {std::pair{"full", 0.0}, {"causal", 0.3}}) {
        BackwardRun run(one_channel(mask, dropped, size < 1e3, dtype));
        const auto set = [&](Buffer& buffer, std::int64_t rows, auto value) {
          for (std::int64_t row = 0; row < rows; ++row) buffer.set(row * 12, value(row));
        };
        for (std::int64_t i = 0; i < 2 * 70 * 12; ++i) run.call.q.set(i, 0.0);
        set(run.call.q, 2 * 70, [&](std::int64_t) { return size; });
        set(run.call.k, 100, [](std::int64_t row) { return row % 2 == 0 ? 1.0 : -1.0; });
        expect_right(run, std::string(mask) + " size " + std::to_string(size));
      }
    }
  }
}

TEST(CpuBackwardValues, ScoresOfEverySizeHaveRightGradients) {
  for (double size = 10; size <= 1e31; size *= 10) {
    for (const double sign : {1.0, -1.0}) {
      std::vector<float> bias(100);
      for (std::size_t j = 0; j < 100; ++j) {
        bias[j] = static_cast<float>(sign * size * (j % 2 == 0 ? 1.0 : 1.5));
      }
      BackwardCase c = case_of("causal", "m[col] + 0.0 * s");
      c.forward.options.args = {{"m", TensorView(bias.data(), {100})}};
      c.forward.with_sink = false;
      BackwardRun run(c);
      expect_right(run, "bias " + std::to_string(sign * size));
    }
  }
}

// The lse of two merged halves counts keys that each half lacks: it is not theirs to replace.
TEST(CpuBackwardValues, MergedHalvesAddUpToTheWhole) {
  for (const double moved : {0.0, -60.0, 200.0}) {
    BackwardCase c = case_of("full", "s + m");
    c.forward.options.args = {{"m", moved}};
    c.forward.with_sink = false;
    for (const std::string& isa : isas_for(DType::float32)) {
      const ForcedIsa forced(isa.c_str());
      BackwardRun whole(c), half(c);
      whole.run();
      half.run();
      const std::vector<double> all_dk = numbers(whole.dk);
      for (TensorView* view :
           {&half.call.k_view, &half.call.v_view, &half.backward.dk, &half.backward.dv}) {
        view->shape[1] = 50;
      }
      attention_backward(half.call.q_view, half.call.k_view, half.call.v_view, half.backward,
                         half.call.c.options);
      for (std::size_t i = 0; i < 50 * 12; ++i) {
        EXPECT_NEAR(half.dk.get(static_cast<std::int64_t>(i)), all_dk[i], 1e-4) << isa << moved;
      }
    }
  }
}

// One head's factor is 0: its logits do not move, though the root's slope has its pole there.
TEST(CpuBackwardValues, AFactorOfZeroUnderARootAddsNothing) {
  const std::vector<float> x = {0.0F, 0.25F};
  BackwardCase c = case_of("causal", "sqrt(s * s * x[h]) + 0.5 * s");
  c.forward.options.args = {{"x", TensorView(x.data(), {2})}};
  BackwardRun run(c);
  run.backward.dargs.clear(), run.dargs.clear();  // infinite where x is 0
  expect_right(run, "root");
  for (const double value : numbers(run.dq)) ASSERT_TRUE(std::isfinite(value));
}

TEST(CpuBackwardValues, NegativeLogSumExpBelowExpsRange) {
  // Every logit near -200: e^lse is 0 in float32.
  BackwardCase c = case_of("causal", "s - 200.0");
  c.forward.with_sink = false;
  BackwardRun run(c);
  expect_right(run, "lse near -200");
}

TEST(CpuBackwardValues, OnlyWhatIsAskedForIsWritten) {
  for (int asked = 0; asked < 3; ++asked) {
    BackwardRun all(case_of("causal")), one(case_of("causal"));
    if (asked != 0) one.backward.dq = {};
    if (asked != 1) one.backward.dk = {};
    if (asked != 2) one.backward.dv = {};
    one.backward.dsink = {};
    all.run();
    one.run();
    const Buffer* got[] = {&one.dq, &one.dk, &one.dv};
    const Buffer* want[] = {&all.dq, &all.dk, &all.dv};
    EXPECT_EQ(numbers(*got[asked]), numbers(*want[asked]));
  }
}

struct BadBackward {
  const char* name;
  const char* message;
  std::function<void(BackwardRun&)> spoil;
};

TEST(CpuBackwardValues, BadCallsAreRefusedBeforeAnyWrite) {
  const BadBackward bad[] = {
      {"no lse", "lse: not given", [](BackwardRun& r) { r.backward.lse = {}; }},
      {"no dout", "dout: not given", [](BackwardRun& r) { r.backward.dout = {}; }},
      {"dout shape", "dout: ", [](BackwardRun& r) { r.backward.dout.shape[1] = 3; }},
      {"dq shape", "dq: ", [](BackwardRun& r) { r.backward.dq.shape[3] = 5; }},
      {"dq dtype", "dq: dtype", [](BackwardRun& r) { r.backward.dq.dtype = DType::float64; }},
      {"dk stride", "dk: stride 0", [](BackwardRun& r) { r.backward.dk.strides[1] = 0; }},
      {"dv null", "dv: null", [](BackwardRun& r) { r.backward.dv.data = nullptr; }},
      {"dv over v", "dv: overlaps v", [](BackwardRun& r) { r.backward.dv = r.call.v_view; }},
      {"dv over dk", "dv: overlaps dk",
       [](BackwardRun& r) { r.backward.dk.data = r.backward.dv.data; }},
      {"no sink", "dsink: ", [](BackwardRun& r) { r.call.c.with_sink = false; }},
      {"darg", "dargs: 'x'", [](BackwardRun& r) {
         r.backward.dargs.push_back({"x", r.backward.dsink});
       }}};
  for (const BadBackward& one : bad) {
    BackwardRun run(case_of("causal"));
    run.run();
    one.spoil(run);
    const std::vector<double> before = numbers(run.dk);
    Attention options = run.call.c.options;
    if (run.call.c.with_sink) options.sink = run.call.sink_view;
    try {
      attention_backward(run.call.q_view, run.call.k_view, run.call.v_view, run.backward, options);
      ADD_FAILURE() << one.name << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).rfind(one.message, 0), 0U)
          << one.name << ": " << error.what();
    }
    EXPECT_EQ(numbers(run.dk), before) << one.name;
  }
}

TEST(CpuBackwardValues, PlansWithoutMemory) {
  const std::int64_t s = 4096, h = 8, d = 64;
  const TensorView x(nullptr, DType::bfloat16, {2, s, h, d});
  Backward backward;
  backward.o = backward.dout = backward.dq = backward.dk = backward.dv = x;
  backward.lse = TensorView(nullptr, DType::float32, {2, h, s});
  const Plan plan = plan_backward(x, x, x, backward, {.mask = "causal"}, 2);
  EXPECT_EQ(plan.problem_line, "bwd bf16 b=2 h=8 s=4096 d=64 mask=causal");
  EXPECT_EQ(plan.kernel.rfind("cpu.backward.", 0), 0U);
  // O(s): far below the 2 * 8 * s * s scores.
  EXPECT_LT(plan.workspace_bytes, std::int64_t{128} << 20);
}

}  // namespace
}  // namespace onepass::cpu_test
