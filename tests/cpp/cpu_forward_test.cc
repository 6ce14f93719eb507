// The CPU forward on every instruction set of this machine, against a naive double loop.
#include <gtest/gtest.h>

#include "by_dtype.h"
#include "cpu_case.h"
#include "reference/philox.h"

namespace onepass::cpu_test {
namespace {

// Of bfloat16: outputs up to 4 rounded to 8 bits.
constexpr ByDType tolerance{.float64 = 1e-13, .float32 = 1e-5, .bfloat16 = 2e-2, .float16 = 2e-3};

// Of bfloat16: weights by a polynomial of degree 3, relative error 1.02e-4.
constexpr ByDType lse_tolerance{
    .float64 = 1e-13, .float32 = 1e-5, .bfloat16 = 1.5e-4, .float16 = 1e-5};

void expect_right(const Case& c, const std::string& what) {
  Call call(c);
  const Call::Expected want = call.expected();
  for (const std::string& isa : isas_for(c.dtype)) {
    const ForcedIsa forced(isa.c_str());
    call.run();
    const std::string where = what + " " + isa + " " + name(c.dtype) +
                              " s=" + std::to_string(c.s_q) + "/" + std::to_string(c.s_kv) +
                              " d=" + std::to_string(c.d) + "/" + std::to_string(c.d_v);
    EXPECT_LE(largest_error(call.o, want.o), tolerance(c.dtype)) << where;
    EXPECT_LE(largest_error(call.lse, want.lse), lse_tolerance(c.dtype)) << where;
  }
}

constexpr DType dtypes[] = {DType::float64, DType::float32, DType::bfloat16, DType::float16};
DType lse_like(DType dtype) { return dtype == DType::float64 ? dtype : DType::float32; }

TEST(CpuForward, LengthsAroundTheTiles) {
  const std::int64_t lengths[] = {1, 2, 3, 6, 7, 63, 64, 65, 127, 257, 513};
  for (const std::int64_t s_q : lengths) {
    for (const std::int64_t s_kv : lengths) {
      if (s_q * s_kv > 127 * 127 && s_q != 65 && s_kv != 65) continue;
      expect_right({.s_q = s_q, .s_kv = s_kv, .d = 16, .d_v = 16}, "full");
      expect_right({.s_q = s_q,
                    .s_kv = s_kv,
                    .d = 8,
                    .d_v = 8,
                    .options = {.mask = "causal"},
                    .visible = [=](auto, auto, auto i, auto j) { return j <= i + s_kv - s_q; }},
                   "causal");
    }
  }
}

TEST(CpuForward, EveryDtypeAndHeadDim) {
  const std::int64_t dims[] = {1, 3, 8, 16, 17, 40, 63, 64, 65, 80, 96, 100, 128, 192, 256, 576};
  for (const DType dtype : dtypes) {
    for (const std::int64_t d : dims) {
      const std::int64_t d_v = d == 192 ? 128 : d == 576 ? 512 : d == 64 ? 1 : d;
      expect_right({.h_q = 2,
                    .s_q = 9,
                    .s_kv = 75,
                    .d = d,
                    .d_v = d_v,
                    .dtype = dtype,
                    .out_dtype = lse_like(dtype)},
                   "dims");
    }
  }
}

TEST(CpuForward, OutputsInTheInputsDtype) {
  for (const DType dtype : dtypes) {
    expect_right(
        {.h_q = 2, .s_q = 33, .s_kv = 70, .d = 24, .d_v = 20, .dtype = dtype, .out_dtype = dtype},
        "out dtype");
  }
}

TEST(CpuForward, GroupedHeadsAndSinks) {
  for (const DType dtype : dtypes) {
    for (const std::int64_t h_kv : {1, 2, 8}) {
      expect_right({.b = 3,
                    .h_q = 8,
                    .h_kv = h_kv,
                    .s_q = 5,
                    .s_kv = 70,
                    .d = 32,
                    .d_v = 16,
                    .dtype = dtype,
                    .out_dtype = lse_like(dtype),
                    .options = {.mask = "k >= 66 & row > 2"},
                    .visible = [](auto, auto, auto i, auto j) { return j >= 66 && i > 2; },
                    .with_sink = true},
                   "sink");
    }
  }
}

TEST(CpuForward, SinkAloneIsTheVeryLse) {
  for (const std::string& isa : isas_for(DType::float32)) {
    const ForcedIsa forced(isa.c_str());
    Call call({.h_q = 3,
               .h_kv = 3,
               .s_q = 4,
               .s_kv = 5,
               .d = 4,
               .d_v = 4,
               .options = {.mask = "k < 0"},
               .with_sink = true});
    call.run();
    for (std::int64_t h = 0; h < 3; ++h) {
      for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(call.lse.get(h * 4 + i), call.sink.get(h));
    }
    for (std::int64_t i = 0; i < 48; ++i) EXPECT_EQ(call.o.get(i), 0.0);
  }
}

TEST(CpuForward, Masks) {
  for (const DType dtype : dtypes) {
    for (const std::int64_t s : {65, 700}) {
      Case c{.h_q = 2,
             .s_q = s,
             .s_kv = s,
             .d = 16,
             .d_v = 16,
             .dtype = dtype,
             .out_dtype = lse_like(dtype)};
      c.options.mask = "window(40, 3)";
      c.visible = [](auto, auto, auto i, auto j) { return j >= i - 40 && j <= i + 3; };
      expect_right(c, c.options.mask);
      c.options.mask = "chunked(100) & (k + row) % 3 != 1";
      c.visible = [](auto, auto, auto i, auto j) { return i / 100 == j / 100 && (i + j) % 3 != 1; };
      expect_right(c, c.options.mask);
      c.options.mask = "h == 0 ? causal : k // 64 % 2 == 1";
      c.visible = [](auto, auto h, auto i, auto j) { return h == 0 ? j <= i : j / 64 % 2 == 1; };
      expect_right(c, c.options.mask);
    }
  }
}

TEST(CpuForward, Scores) {
  for (const DType dtype : dtypes) {
    for (const std::int64_t s : {17, 600}) {
      Case c{.h_q = 2,
             .s_q = s,
             .s_kv = s,
             .d = 16,
             .d_v = 16,
             .dtype = dtype,
             .out_dtype = lse_like(dtype)};
      c.options.score = "softcap(s, 2.0)";
      c.score = [](double x, auto, auto, auto, auto) { return 2.0 * std::tanh(x / 2.0); };
      expect_right(c, c.options.score);
      c.options.scale = -0.5;
      c.options.mask = "causal";
      c.options.score = "k % 5 == 0 ? -inf : s - 0.125 * abs(q - k)";
      c.visible = [](auto, auto, auto i, auto j) { return j <= i && j % 5 != 0; };
      c.score = [](double x, auto, auto, auto i, auto j) {
        return x - 0.125 * static_cast<double>(std::abs(i - j));
      };
      expect_right(c, c.options.score);
    }
  }
}

TEST(CpuForward, Dropout) {
  for (const DType dtype : dtypes) {
    Case c{.b = 2,
           .h_q = 4,
           .h_kv = 2,
           .s_q = 37,
           .s_kv = 600,
           .d = 16,
           .d_v = 16,
           .dtype = dtype,
           .out_dtype = lse_like(dtype)};
    c.options.dropout = {
        .p = 0.48, .seed = 0x123456789ABCDEFULL, .offset = 1ULL << 33, .row0 = 48, .col0 = 1 << 20};
    c.options.mask = "causal";
    c.visible = [](auto, auto, auto i, auto j) { return j <= i + 563; };
    c.kept = [drop = reference::Dropout{0.48, 0x123456789ABCDEFULL, 1ULL << 33, 48, 1 << 20}](
                 auto b, auto h, auto i, auto j) { return reference::kept(drop, b, h, i, j); };
    expect_right(c, "dropout");
  }
}

TEST(CpuForward, Scales) {
  for (const double scale : {0.0, -2.0, 3.0, 1e-42, 1e-300, -1e-30}) {
    expect_right({.s_q = 20,
                  .s_kv = 300,
                  .d = 4,
                  .d_v = 8,
                  .options = {.mask = "causal", .scale = scale},
                  .visible = [](auto, auto, auto i, auto j) { return j <= i + 280; }},
                 "scale " + std::to_string(scale));
  }
}

TEST(CpuForward, EmptySizes) {
  for (const std::string& isa : isas_for(DType::float32)) {
    const ForcedIsa forced(isa.c_str());
    Call no_keys({.h_q = 2, .s_q = 3, .s_kv = 0, .d = 4, .d_v = 5});
    no_keys.run();
    for (std::int64_t i = 0; i < 30; ++i) EXPECT_EQ(no_keys.o.get(i), 0.0);
    for (std::int64_t i = 0; i < 6; ++i) {
      EXPECT_EQ(no_keys.lse.get(i), -std::numeric_limits<double>::infinity());
    }
    Call no_dims({.h_q = 2, .s_q = 3, .s_kv = 7, .d = 0, .d_v = 5});
    no_dims.run();
    EXPECT_LE(largest_error(no_dims.o, no_dims.expected().o), 1e-6);
    Call no_values({.h_q = 2, .s_q = 3, .s_kv = 7, .d = 3, .d_v = 0});
    no_values.run();
    EXPECT_LE(largest_error(no_values.lse, no_values.expected().lse), 1e-6);
    for (const Case& c : {Case{.b = 0, .s_q = 3, .s_kv = 4, .d = 2, .d_v = 2},
                          Case{.s_q = 0, .s_kv = 4, .d = 2, .d_v = 2},
                          Case{.h_q = 0, .h_kv = 0, .s_q = 2, .s_kv = 4, .d = 2, .d_v = 2},
                          Case{.s_q = 0, .s_kv = 0, .d = 0, .d_v = 0}}) {
      Call call(c);
      EXPECT_NO_THROW(call.run());
    }
  }
}

}  // namespace
}  // namespace onepass::cpu_test
