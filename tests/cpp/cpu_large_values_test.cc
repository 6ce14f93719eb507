// Logits, sinks and values near the ends of their types: every instruction set, every tile.
#include <gtest/gtest.h>

#include "cpu_case.h"
#include "reference/philox.h"

namespace onepass::cpu_test {
namespace {

constexpr std::int64_t keys = 1100;  // more than two tiles of keys

DType wide(DType dtype) { return dtype == DType::float64 ? dtype : DType::float32; }

/// One dim, scale 1: the logit of key j is q * k[j], exactly.
struct Line {
  Line(int rows, DType dtype, double q_value, Attention options = {})
      : rows(rows),
        call({.h_q = 1,
              .h_kv = 1,
              .s_q = rows,
              .s_kv = keys,
              .d = 1,
              .d_v = 1,
              .dtype = dtype,
              .out_dtype = wide(dtype),
              .options = std::move(options)}) {
    call.c.options.scale = 1.0;
    for (int i = 0; i < rows; ++i) call.q.set(i, q_value);
    for (int j = 0; j < keys; ++j) call.v.set(j, j % 8);
  }
  void logits(const std::function<double(int)>& of) {
    for (int j = 0; j < keys; ++j) call.k.set(j, of(j));
  }
  void expect(double o, double lse, const std::string& what) {
    for (const std::string& isa : isas_for(call.c.dtype)) {
      const ForcedIsa forced(isa.c_str());
      call.run();
      for (int i = 0; i < rows; ++i) {
        EXPECT_NEAR(call.o.get(i), o, std::abs(o) * 1e-5) << what << " " << isa;
        EXPECT_NEAR(call.lse.get(i), lse, std::abs(lse) * 1e-6) << what << " " << isa;
      }
    }
  }
  int rows;
  Call call;
};

/// Few rows take the decode kernels, more the forward ones.
class CpuLargeValues : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Rows, CpuLargeValues, testing::Values(7, 20));

// 552 of the keys share the largest logit; the mean of their v is 3.5 whatever its size.
TEST_P(CpuLargeValues, LogitsOfEverySize) {
  for (const DType dtype : {DType::float64, DType::float32}) {
    const double most = dtype == DType::float64 ? 1e300 : 3.2e38;
    for (double size = 1; size <= most; size *= 1e3) {
      for (const double sign : {1.0, -1.0}) {
        Line line(GetParam(), dtype, 1.0);
        const double top =
            dtype == DType::float64 ? sign * size : double(static_cast<float>(sign * size));
        const double low = sign > 0 ? -1e6 - size : -2 * size - 1e6;
        line.logits([=](int j) { return j / 8 % 2 ? low : top; });
        line.expect(3.5, top + std::log(552), "size " + std::to_string(top));
      }
    }
  }
}

// The maximum crosses the size from which logits are subtracted otherwise, both ways.
TEST_P(CpuLargeValues, MaximaThatGrowFromTileToTile) {
  for (const DType dtype : {DType::float64, DType::float32}) {
    for (const double base : {65536.0, -65536.0, 131072.0, 8.0}) {
      Line line(GetParam(), dtype, 1.0);
      line.logits([=](int j) { return base - 1 + (j / 128) * 0.25; });
      double l = 0, o = 0;
      for (int j = 0; j < keys; ++j) {
        const double weight = std::exp(-1 + (j / 128) * 0.25);
        l += weight;
        o += weight * (j % 8);
      }
      line.expect(o / l, base + std::log(l), "base " + std::to_string(base));
    }
  }
}

TEST_P(CpuLargeValues, RowsMovedFarDownByABias) {
  for (const double amount : {-1e4, -1e9, -1e12, -3e38}) {
    Line line(GetParam(), DType::float32, 0.0, {.score = "s + m", .args = {{"m", amount}}});
    line.logits([](int) { return 1.0; });
    double mean = 0;
    for (int j = 0; j < keys; ++j) mean += j % 8 / double(keys);
    line.expect(mean, amount + std::log(keys), "bias " + std::to_string(amount));
  }
}

TEST_P(CpuLargeValues, SinksOfEverySize) {
  for (const double sink : {1e5, 1e10, 3e38, std::numeric_limits<double>::infinity()}) {
    Line line(GetParam(), DType::float32, 0.0);
    line.call.c.with_sink = true;
    line.logits([](int) { return 1.0; });
    line.call.sink.set(0, sink);
    for (const char* mask : {"full", "k < 0"}) {
      line.call.c.options.mask = mask;
      for (const std::string& isa : isas_for(DType::float32)) {
        const ForcedIsa forced(isa.c_str());
        line.call.run();
        EXPECT_EQ(line.call.o.get(0), 0.0) << sink << " " << isa << " " << mask;
        EXPECT_EQ(line.call.lse.get(0), static_cast<float>(sink)) << sink << " " << isa;
      }
    }
  }
}

// The sum of weights times values passes the largest float; their mean does not.
TEST_P(CpuLargeValues, ValuesNearTheLargest) {
  for (const DType dtype : {DType::float64, DType::float32, DType::bfloat16}) {
    const double value = dtype == DType::float64 ? 1e308 : 0x1p127;
    Line line(GetParam(), dtype, 0.0);
    for (int j = 0; j < keys; ++j) line.call.v.set(j, j % 4 ? value : -value);
    for (const std::string& isa : isas_for(dtype)) {
      const ForcedIsa forced(isa.c_str());
      line.call.run();
      EXPECT_NEAR(line.call.o.get(3) / value, 0.5, 1e-5) << isa << " " << name(dtype);
    }
  }
}

// A visible NaN reaches the output; of a pair that dropout takes, nothing does.
TEST_P(CpuLargeValues, DroppedPairsLeaveTheirValuesOut) {
  for (const DType dtype : {DType::float64, DType::float32, DType::bfloat16, DType::float16}) {
    Line line(GetParam(), dtype, 0.0, {.dropout = {.p = 0.5, .seed = 7}});
    const int key = 600;
    line.call.v.set(key, std::numeric_limits<double>::quiet_NaN());
    const reference::Dropout drop{0.5, 7, 0, 0, 0};
    for (const std::string& isa : isas_for(dtype)) {
      const ForcedIsa forced(isa.c_str());
      line.call.run();
      for (int i = 0; i < GetParam(); ++i) {
        EXPECT_EQ(std::isnan(line.call.o.get(i)), reference::kept(drop, 0, 0, i, key))
            << isa << " " << name(dtype) << " row " << i;
      }
    }
  }
}

}  // namespace
}  // namespace onepass::cpu_test
