// Scores of the vector evaluator against one pair at a time.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "lang/compile.h"
#include "lang/evaluate.h"
#include "program_oracle.h"
#include "random_expression.h"

namespace onepass::lang {
namespace {

struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};

const Scope scope{.b = 1,
                  .h = 2,
                  .h_kv = 1,
                  .s_q = ArrayArguments::s_q,
                  .s_kv = ArrayArguments::s_kv,
                  .q_start = 4,
                  .k_start = -2,
                  .token_q_start = 20,
                  .token_k_start = 30};

double logit(std::int64_t row, std::int64_t col) {
  const double special[] = {HUGE_VAL, -HUGE_VAL, std::nan(""), 0.0, -0.0, 1e30, -3e-9};
  const std::int64_t i = row * 31 + col;
  return i % 13 == 0 ? special[i / 13 % 7] : std::sin(static_cast<double>(i)) * 12;
}

// Largest difference relative to max(1, |expected|); infinities and NaN must be the same.
template <class Real>
double largest_difference(const Program& program, bool int32, bool in_place) {
  const std::unique_ptr<void, FreeMemory> scratch(
      std::aligned_alloc(64, static_cast<std::size_t>(evaluator_scratch_bytes(program))));
  Evaluator<Real> evaluator(program, scope, int32, scratch.get());
  Oracle<Real> oracle(program, scope);
  double worst = 0;
  for (const int offset : {0, 13}) {
    const int count = static_cast<int>(scope.s_kv) - offset - (in_place ? 0 : 9);
    evaluator.begin_keys(0, static_cast<int>(scope.s_kv));
    for (std::int64_t row = 0; row < scope.s_q; ++row) {
      std::vector<Real> s, out(static_cast<std::size_t>(count) + 1, Real(77));
      for (int i = 0; i < count; ++i) s.push_back(static_cast<Real>(logit(row, offset + i)));
      s.push_back(Real(77));
      if (in_place) {
        out = s;
        evaluator.score_row(row, offset, count, out.data());
      } else {
        evaluator.value_row(row, offset, count, s.data(), out.data());
      }
      EXPECT_EQ(out.back(), Real(77));
      for (int i = 0; i < count; ++i) {
        const double got = out[static_cast<std::size_t>(i)];
        const double want = oracle.at(row, offset + i, s[static_cast<std::size_t>(i)]).real;
        if (std::isnan(want) ? std::isnan(got) : got == want) continue;
        const double difference = std::fabs(got - want) / std::max(1.0, std::fabs(want));
        worst = std::isnan(difference) ? HUGE_VAL : std::max(worst, difference);
      }
    }
  }
  return worst;
}

void check(const std::string& text, const ArrayArguments& arrays, double float_bound,
           double double_bound) {
  Result<Program> compiled = compile(text, Kind::score, arrays.arguments());
  ASSERT_TRUE(compiled.ok()) << text << "\n" << compiled.status().message;
  for (const bool int32 : {true, false}) {
    for (const bool in_place : {true, false}) {
      EXPECT_LE(largest_difference<float>(compiled.value(), int32, in_place), float_bound) << text;
      EXPECT_LE(largest_difference<double>(compiled.value(), int32, in_place), double_bound)
          << text;
    }
  }
}

TEST(EvaluateScores, ExactArithmetic) {
  const ArrayArguments arrays;
  for (const char* text : {"s",
                           "s + ratio",
                           "-s",
                           "bias(s, dense4)",
                           "s + brain[row, col]",
                           "s - slopes[b, h] * abs(q - k)",
                           "k <= q ? s : -inf",
                           "where(keep[row, col], s, row)",
                           "where(flag, s, 1)",
                           "min(s, half[col])",
                           "max(0.3, s)",
                           "floor(s)",
                           "s // half[col]",
                           "s % 3.5",
                           "s / half[col]",
                           "2 / s",
                           "abs(s) * (row - 3)",
                           "s < 0 ? k : q",
                           "q",
                           "k",
                           "ratio",
                           "half[col]",
                           "q * k",
                           "sqrt(s)",
                           "sqrt(abs(s - k))",
                           "s * 0 + none[k]",
                           "table[row, col // 3] - s",
                           "s == s ? s : 0"}) {
    check(text, arrays, 0, 0);
  }
}

TEST(EvaluateScores, ElementaryFunctions) {
  const ArrayArguments arrays;
  for (const char* text :
       {"softcap(s, 30)", "softcap(s, 0.5)", "softcap(s, inf)", "s / 3", "s / 1e-40", "tanh(s)",
        "exp(s)", "exp(-abs(s)) * k", "log(s)", "log(abs(s) + 1)", "log(k)", "exp(row)",
        "tanh(k * 0.01)", "log(exp(tanh(s)))", "s * exp(-0.1 * abs(q - k)) + tanh(ratio)"}) {
    check(text, arrays, 1e-6, 2e-15);
  }
}

TEST(EvaluateScores, RandomArithmetic) {
  const ArrayArguments arrays;
  RandomExpression random(77);
  int compared = 0;
  for (int i = 0; i < 250; ++i) {
    const std::string text = "(s * " + random.real(1 + i % 3) + ") + " + random.real(i % 4);
    Result<Program> compiled = compile(text, Kind::score, arrays.arguments());
    // A division by what all keys share is a product with its reciprocal: see ElementaryFunctions.
    if (!compiled.ok() || text.find(" / ") != std::string::npos) continue;
    ++compared;
    EXPECT_LE(largest_difference<float>(compiled.value(), false, true), 0) << text;
    EXPECT_LE(largest_difference<double>(compiled.value(), false, false), 0) << text;
  }
  EXPECT_GT(compared, 100);
}

}  // namespace
}  // namespace onepass::lang
