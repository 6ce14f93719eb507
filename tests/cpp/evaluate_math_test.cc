// Elementary functions of the vector evaluator against the C library's in higher precision: largest
// error in units in the last place over dense samples, with and without fused multiply-add.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>

namespace onepass::lang {
namespace {

namespace plain {
constexpr bool fused_multiply_add = false;
#include "evaluate_math_functions.inl"
}  // namespace plain

#if defined(__x86_64__) && !defined(__clang__)
#define ONEPASS_TEST_FUSED 1
#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace fused {
constexpr bool fused_multiply_add = true;
#include "evaluate_math_functions.inl"
}  // namespace fused
#pragma GCC pop_options
#endif

// Error of `got` in units in the last place of the exact value, as Real sees it.
template <class Real>
double ulps(Real got, long double exact) {
  const Real nearest = static_cast<Real>(exact);
  if (std::isnan(nearest)) return std::isnan(got) ? 0 : HUGE_VAL;
  if (std::isinf(nearest) || std::isinf(got)) return got == nearest ? 0 : HUGE_VAL;
  const Real size = std::fabs(nearest);
  const Real unit = std::nextafter(size, std::numeric_limits<Real>::infinity()) - size;
  return static_cast<double>(std::fabs(static_cast<long double>(got) - exact) / unit);
}

template <class Real, class Function, class Exact>
double largest_error(Real low, Real high, Function function, Exact exact) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<Real> uniform(low, high);
  double worst = 0;
  for (int i = 0; i < 200000; ++i) {
    const Real x = uniform(random);
    worst = std::max(worst, ulps(function(x), exact(static_cast<long double>(x))));
    const Real tiny = std::ldexp(x, -static_cast<int>(random() % 60));
    worst = std::max(worst, ulps(function(tiny), exact(static_cast<long double>(tiny))));
  }
  return worst;
}

const auto exact_exp = [](long double x) { return std::exp(x); };
const auto exact_log = [](long double x) { return std::log(x); };
const auto exact_tanh = [](long double x) { return std::tanh(x); };

// Any positive number, subnormals included.
template <class Real, class Bits, class Function>
double largest_log_error(Function function) {
  std::mt19937_64 random(2);
  double worst = 0;
  for (int i = 0; i < 400000; ++i) {
    const Bits bits = static_cast<Bits>(random()) >> 1;
    Real x;
    std::memcpy(&x, &bits, sizeof x);
    worst = std::max(worst, ulps(function(x), exact_log(static_cast<long double>(x))));
  }
  return worst;
}

template <class Functions, class Real>
void check_special() {
  const auto exp = [](Real x) { return Functions::exp(x); };
  const auto log = [](Real x) { return Functions::log(x); };
  const auto tanh = [](Real x) { return Functions::tanh(x); };
  const Real infinity = std::numeric_limits<Real>::infinity();
  const Real nan = std::numeric_limits<Real>::quiet_NaN();
  EXPECT_EQ(exp(Real(0)), 1);
  EXPECT_EQ(exp(infinity), infinity);
  EXPECT_EQ(exp(-infinity), 0);
  EXPECT_TRUE(std::isnan(exp(nan)));
  EXPECT_EQ(log(Real(1)), 0);
  EXPECT_EQ(log(Real(0)), -infinity);
  EXPECT_EQ(log(Real(-0.0)), -infinity);
  EXPECT_EQ(log(infinity), infinity);
  EXPECT_TRUE(std::isnan(log(Real(-1))));
  EXPECT_TRUE(std::isnan(log(-infinity)));
  EXPECT_TRUE(std::isnan(log(nan)));
  EXPECT_EQ(tanh(infinity), 1);
  EXPECT_EQ(tanh(-infinity), -1);
  EXPECT_TRUE(std::isnan(tanh(nan)));
  EXPECT_EQ(tanh(Real(0)), 0);
  EXPECT_TRUE(std::signbit(tanh(Real(-0.0))));
}

template <class Functions, class Real>
void check_floor() {
  const auto floor = [](Real x) { return Functions::floor(x); };
  const Real infinity = std::numeric_limits<Real>::infinity();
  for (const Real x : {Real(0), Real(-0.0), Real(0.3), Real(-0.3), Real(0.5), Real(1.5), Real(-1.5),
                       Real(2.5), Real(-1), Real(7), Real(8388607.5), Real(-8388607.5),
                       Real(8388608), Real(4503599627370495.5), Real(-4503599627370495.5),
                       Real(1e30), infinity, -infinity, std::nextafter(Real(1), Real(0))}) {
    EXPECT_EQ(floor(x), std::floor(x)) << x;
    EXPECT_EQ(std::signbit(floor(x)), std::signbit(std::floor(x))) << x;
  }
  EXPECT_TRUE(std::isnan(floor(std::numeric_limits<Real>::quiet_NaN())));
  std::mt19937_64 random(3);
  for (int i = 0; i < 100000; ++i) {
    const Real x =
        std::ldexp(Real(static_cast<std::int64_t>(random())), -static_cast<int>(random() % 70));
    ASSERT_EQ(floor(x), std::floor(x)) << x;
  }
}

struct Bounds {  // units in the last place
  double exp, log, tanh;
};

template <class Functions, class Real, class Bits>
void check_errors(const Bounds& bounds, Real exp_range) {
  const auto exp = [](Real x) { return Functions::exp(x); };
  const auto log = [](Real x) { return Functions::log(x); };
  const auto tanh = [](Real x) { return Functions::tanh(x); };
  const double exp_error = largest_error<Real>(-exp_range, exp_range, exp, exact_exp);
  const double log_error = std::max(largest_error<Real>(Real(0.5), Real(2), log, exact_log),
                                    largest_log_error<Real, Bits>(log));
  const double tanh_error = std::max(largest_error<Real>(-1, 1, tanh, exact_tanh),
                                     largest_error<Real>(-30, 30, tanh, exact_tanh));
  std::printf("ulp: exp %.2f log %.2f tanh %.2f\n", exp_error, log_error, tanh_error);
  EXPECT_LT(exp_error, bounds.exp);
  EXPECT_LT(log_error, bounds.log);
  EXPECT_LT(tanh_error, bounds.tanh);
}

template <class Functions>
void check_all() {
  check_errors<Functions, float, std::uint32_t>({1.1, 1.0, 2.6}, 104.0f);
  check_errors<Functions, double, std::uint64_t>({1.1, 1.0, 2.6}, 746.0);
  check_special<Functions, float>();
  check_special<Functions, double>();
  check_floor<Functions, float>();
  check_floor<Functions, double>();
}

TEST(EvaluateMath, WithoutFusedMultiplyAdd) { check_all<plain::Functions>(); }

#if ONEPASS_TEST_FUSED
TEST(EvaluateMath, WithFusedMultiplyAdd) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) GTEST_SKIP() << "no FMA";
  check_all<fused::Functions>();
}
#endif

}  // namespace
}  // namespace onepass::lang
