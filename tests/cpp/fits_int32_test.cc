// What fits_int32 proves, and what it must not.
#include <gtest/gtest.h>

#include <limits>

#include "lang/compile.h"
#include "lang/interval.h"

namespace onepass::lang {
namespace {

bool fits(const char* text, const Scope& scope, const std::vector<Argument>& arguments = {},
          Kind kind = Kind::mask) {
  const Result<Program> program = compile(text, kind, arguments);
  EXPECT_TRUE(program.ok()) << program.status().message;
  return fits_int32(program.value(), scope);
}

Scope square(std::int64_t s) {
  Scope scope;
  scope.s_q = scope.s_kv = s;
  return scope;
}

TEST(FitsInt32, EverySubtermCounts) {
  const Scope scope = square(4096);
  EXPECT_TRUE(fits("causal", scope));
  EXPECT_TRUE(fits("window(255, 0) & chunked(64)", scope));
  EXPECT_TRUE(fits("q * 500000 > k", scope));
  EXPECT_FALSE(fits("q * 600000 > k", scope));
  // The sum fits, a part of it does not.
  EXPECT_FALSE(fits("q * 600000 - q * 599999 > k", scope));
  EXPECT_FALSE(fits("k < 3000000000", scope));
  EXPECT_FALSE(fits("k < n", scope, {{"n", std::int64_t{1} << 31}}));
  EXPECT_TRUE(fits("k < n", scope, {{"n", (std::int64_t{1} << 31) - 1}}));
  EXPECT_FALSE(fits("abs(n) > k", scope, {{"n", -(std::int64_t{1} << 31)}}));
  EXPECT_FALSE(fits("n // (q - k) > 0", scope, {{"n", -(std::int64_t{1} << 31)}}));
  // The remainder is had by way of 3 * (x // 3), which may lie below x.
  EXPECT_FALSE(fits("(q - 2147483647 - 1) % 3 > k", scope));
  EXPECT_TRUE(fits("(q - 2147483647 + 2) % 3 > k", scope));
}

TEST(FitsInt32, PositionsAndLengths) {
  const std::int64_t limit = std::int64_t{1} << 31;
  EXPECT_TRUE(fits("causal", square(limit)));
  EXPECT_FALSE(fits("causal", square(limit + 1)));
  Scope late = square(64);
  late.q_start = limit - 64;
  EXPECT_TRUE(fits("causal", late));
  late.q_start = limit - 63;
  EXPECT_FALSE(fits("causal", late));
  EXPECT_TRUE(fits("col <= row", late));
  late.q_start = std::numeric_limits<std::int64_t>::max() - 5;
  EXPECT_FALSE(fits("causal", late));
  EXPECT_TRUE(fits("causal", square(0)));
}

TEST(FitsInt32, ArraysByTypeOrByValue) {
  const Scope scope = square(100);
  std::vector<std::int32_t> narrow(100, std::numeric_limits<std::int32_t>::max());
  std::vector<std::int64_t> wide(100, 7);
  std::vector<std::int64_t> big(100 * 100, 3);
  const std::vector<Argument> arguments = {
      {"narrow", TensorView(narrow.data(), DType::int32, {100})},
      {"wide", TensorView(wide.data(), DType::int64, {1, 100})},
      {"big", TensorView(big.data(), DType::int64, {100, 100})}};
  EXPECT_TRUE(fits("narrow[q] > k", scope, arguments));
  EXPECT_FALSE(fits("narrow[q] + 1 > k", scope, arguments));
  EXPECT_TRUE(fits("document(wide)", scope, arguments));
  EXPECT_TRUE(fits("wide[b, k] * 1000 > k", scope, arguments));
  EXPECT_FALSE(fits("big[q, k] > k", scope, arguments));  // more values than it looks at
  wide[99] = std::int64_t{1} << 40;
  EXPECT_FALSE(fits("document(wide)", scope, arguments));
  EXPECT_TRUE(fits("wide[b, min(k, 98)] > k", scope, arguments));
}

TEST(FitsInt32, ScoresToo) {
  const Scope scope = square(4096);
  EXPECT_TRUE(fits("s - 0.5 * abs(q - k)", scope, {}, Kind::score));
  EXPECT_FALSE(fits("s - 0.5 * abs(q - k * 1000000)", scope, {}, Kind::score));
  EXPECT_TRUE(fits("s + where(s > 0.0, q, k)", scope, {}, Kind::score));
}

}  // namespace
}  // namespace onepass::lang
