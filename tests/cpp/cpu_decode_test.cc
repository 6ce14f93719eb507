// The decode kernels on every instruction set of this machine, against a naive double loop.
#include <gtest/gtest.h>

#include "cpu_case.h"

namespace onepass::cpu_test {
namespace {

constexpr DType dtypes[] = {DType::float64, DType::float32, DType::bfloat16, DType::float16};

double tolerance(DType dtype) {
  return dtype == DType::float64    ? 1e-13
         : dtype == DType::float32  ? 1e-5
         : dtype == DType::bfloat16 ? 2e-2
                                    : 2e-3;
}

void expect_right(const Case& c, const std::string& what) {
  Call call(c);
  const Call::Expected want = call.expected();
  for (const std::string& isa : isas_for(c.dtype)) {
    if (isa == "avx512_bf16") continue;
    const ForcedIsa forced(isa.c_str());
    const Plan planned =
        plan(call.q_view, call.k_view, call.v_view, call.o_view, call.c.options, 2);
    const std::string where = what + " " + isa + " " + name(c.dtype);
    ASSERT_EQ(planned.kernel, "cpu.decode." + isa) << where;
    call.run(1);
    EXPECT_LE(largest_error(call.o, want.o), tolerance(c.dtype)) << where;
    EXPECT_LE(largest_error(call.lse, want.lse), c.dtype == DType::float64 ? 1e-13 : 1e-5) << where;
    const Buffer o = call.o, lse = call.lse;
    call.run(2);
    EXPECT_EQ(o.bytes(), call.o.bytes()) << where << " 2 threads";
    EXPECT_EQ(lse.bytes(), call.lse.bytes()) << where << " 2 threads";
  }
}

// Every number of rows, and keys around the blocks and chunks.
TEST(CpuDecode, RowsAndKeys) {
  for (const std::int64_t group : {1, 2, 3, 4, 8, 16}) {
    for (const std::int64_t s_q : {1, 2, 3, 5, 16}) {
      if (group * s_q > 16) continue;
      for (const std::int64_t s_kv : {512, 513, 1023, 1500}) {
        expect_right(
            {.b = 2, .h_q = 2 * group, .h_kv = 2, .s_q = s_q, .s_kv = s_kv, .d = 16, .d_v = 16},
            "group " + std::to_string(group) + " s " + std::to_string(s_q) + "/" +
                std::to_string(s_kv));
      }
    }
  }
}

TEST(CpuDecode, EveryDtypeAndHeadDim) {
  for (const DType dtype : dtypes) {
    for (const std::int64_t d : {1, 3, 16, 40, 63, 64, 80, 128, 192, 576}) {
      const std::int64_t d_v = d == 192 ? 128 : d == 576 ? 512 : d == 64 ? 1 : d;
      expect_right({.h_q = 6,
                    .h_kv = 3,
                    .s_q = 2,
                    .s_kv = 700,
                    .d = d,
                    .d_v = d_v,
                    .dtype = dtype,
                    .out_dtype = dtype == DType::float64 ? dtype : DType::float32},
                   "d " + std::to_string(d));
    }
  }
}

TEST(CpuDecode, Masks) {
  Case c{.b = 2, .h_q = 4, .h_kv = 2, .s_q = 3, .s_kv = 1700, .d = 24, .d_v = 20};
  const std::int64_t shift = c.s_kv - c.s_q;
  c.options.mask = "causal";
  c.visible = [=](auto, auto, auto i, auto j) { return j <= i + shift; };
  expect_right(c, "causal");
  c.options.mask = "window(700, 0)";
  c.visible = [=](auto, auto, auto i, auto j) { return j <= i + shift && j >= i + shift - 700; };
  expect_right(c, "window");
  c.options.mask = "k < 3 | k == 1030 + h";  // a chunk that no row sees, and heads that differ
  c.visible = [=](auto, auto h, auto, auto j) { return j < 3 || j == 1030 + h; };
  expect_right(c, "by head");
  c.options.mask =
      "h % 2 == 0 ? causal : window(25, 0)";  // chunks that one of two heads sees whole
  c.visible = [=](auto, auto h, auto i, auto j) {
    return j <= i + shift && (h % 2 == 0 || j >= i + shift - 25);
  };
  expect_right(c, "a window for every other head");
  c.options.mask = "h % 2 == 1 ? causal : window(25, 0)";
  c.visible = [=](auto, auto h, auto i, auto j) {
    return j <= i + shift && (h % 2 == 1 || j >= i + shift - 25);
  };
  expect_right(c, "a window for the others");
  c.options.mask = "k % 7 == q % 7 & b == 1";  // sequence 0 sees nothing
  c.visible = [=](auto b, auto, auto i, auto j) { return j % 7 == (i + shift) % 7 && b == 1; };
  expect_right(c, "rows without a key");
  c.with_sink = true;
  expect_right(c, "sink");
}

TEST(CpuDecode, Scores) {
  for (const DType dtype : {DType::float64, DType::float32}) {
    Case c{.b = 2,
           .h_q = 4,
           .h_kv = 2,
           .s_q = 2,
           .s_kv = 1030,
           .d = 24,
           .d_v = 20,
           .dtype = dtype,
           .out_dtype = dtype};
    c.options.score = "5 * tanh(s / 5) - 0.01 * (h + 1) * abs(q - k)";
    c.score = [](double s, auto, auto h, auto i, auto j) {
      return 5 * std::tanh(s / 5) - 0.01 * double(h + 1) * std::abs(double(i + 1028 - j));
    };
    expect_right(c, "soft cap and slopes");
    c.options.score = "k % 2 == 0 ? s : -inf";
    c.score = [](double s, auto, auto, auto, auto j) {
      return j % 2 == 0 ? s : -std::numeric_limits<double>::infinity();
    };
    expect_right(c, "hidden by the score");
  }
}

// NaN in a hidden key or value stays there; a visible one reaches the output.
TEST(CpuDecode, NanStaysWhereItIsHidden) {
  for (const DType dtype : dtypes) {
    Case c{.h_q = 4,
           .h_kv = 2,
           .s_q = 1,
           .s_kv = 1100,
           .d = 16,
           .d_v = 16,
           .dtype = dtype,
           .out_dtype = dtype == DType::float64 ? dtype : DType::float32};
    c.options.mask = "k != 700 & k != 3";
    Call call(c);
    for (const std::string& isa : isas_for(dtype)) {
      if (isa == "avx512_bf16") continue;
      const ForcedIsa forced(isa.c_str());
      const double nan = std::numeric_limits<double>::quiet_NaN();
      call.run();
      const Buffer clean = call.o;
      for (const std::int64_t key : {3, 700}) {
        for (int i = 0; i < 32; ++i) call.k.set(key * 32 + i, nan), call.v.set(key * 32 + i, nan);
      }
      call.run();
      for (int i = 0; i < 64; ++i) {
        EXPECT_NEAR(call.o.get(i), clean.get(i), 1e-6) << isa << " " << name(dtype);
      }
      const double before = call.v.get(900 * 32 + 5);
      call.v.set(900 * 32 + 5, nan);  // head 0, channel 5, visible
      call.run();
      for (int i = 0; i < 64; ++i) {
        EXPECT_EQ(std::isnan(call.o.get(i)), i < 32 && i % 16 == 5) << isa << " " << i;
      }
      call.v.set(900 * 32 + 5, before);
    }
  }
}

}  // namespace
}  // namespace onepass::cpu_test
