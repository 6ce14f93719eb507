// Symbolic derivatives: closed forms, the rules at kinks, branches not chosen, and finite
// differences on random scores.
#include "lang/derivative.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lang/builder.h"
#include "lang/compile.h"
#include "tests/cpp/lang_scalar.h"

namespace onepass::lang {
namespace {

Program scored(const std::string& text, std::span<const Argument> arguments = {}) {
  const Result<Program> program = compile(text, Kind::score, arguments);
  EXPECT_TRUE(program.ok()) << text << "\n" << program.status().message;
  return program.ok() ? program.value() : compile("s", Kind::score, {}).value();
}

std::string slope(const std::string& text, std::span<const Argument> arguments = {}) {
  return to_text(derivative_logit(scored(text, arguments)));
}

double slope_at(const std::string& text, double s, std::int64_t q = 0, std::int64_t k = 0) {
  reference::Pair pair;
  pair.s = s, pair.q = q, pair.k = k;
  return value(derivative_logit(scored(text)), pair).real;
}

TEST(LangDerivative, ClosedForms) {
  EXPECT_EQ(slope("s"), "1.0");
  EXPECT_EQ(slope("s + q * 0.5"), "1.0");
  EXPECT_EQ(slope("q - 3.5"), "0.0");
  EXPECT_EQ(slope("-s"), "-1.0");
  EXPECT_EQ(slope("q - s"), "-1.0");
  EXPECT_EQ(slope("2.5 * s"), "2.5");
  EXPECT_EQ(slope("s * s"), "s + s");
  EXPECT_EQ(slope("exp(s)"), "exp(s)");
  EXPECT_EQ(slope("log(s)"), "1.0 / s");
  EXPECT_EQ(slope("sqrt(s)"), "0.5 / sqrt(s)");
  // The factor 2 * (1 / 2) is known only with the literals, so it is a parameter: one kernel for
  // all.
  EXPECT_EQ(slope("softcap(s, 2)"), "1.0 * (1.0 - tanh(s / 2.0) * tanh(s / 2.0))");
  EXPECT_EQ(slope("causal ? s : -inf"), "k <= q ? 1.0 : 0.0");
  EXPECT_EQ(slope("abs(s)"), "s != 0.0 ? s < 0.0 ? -1.0 : 1.0 : 0.0");
  EXPECT_EQ(slope("max(s, 0.5)"), "!(s < 0.5) ? 1.0 : 0.0");
  EXPECT_EQ(slope("min(0.5, s)"), "s < 0.5 ? 1.0 : 0.0");
  EXPECT_EQ(slope("floor(s) + s // 0.5 + (s < 2 ? 1 : 3)"), "0.0");
  EXPECT_EQ(slope("s % 4.0"), "1.0");
  EXPECT_EQ(slope("abs(q - k) * 0.25 * s"), "abs(q - k) * 0.25");
}

TEST(LangDerivative, LinearFormsHaveSlopeOneAndTheirArraysAFactor) {
  std::mt19937 random(3);
  const Data data(random);
  EXPECT_EQ(slope("alibi(s, slopes)", data.arguments), "1.0");
  EXPECT_EQ(slope("s + f[b, h, k]", data.arguments), "1.0");

  const auto alibi = derivative_arrays(scored("alibi(s, slopes)", data.arguments));
  ASSERT_EQ(alibi.size(), 1u);
  EXPECT_EQ(alibi[0].array, 0);
  EXPECT_EQ(to_text(alibi[0].factor), "-floor(abs(q - k))");
  ASSERT_EQ(alibi[0].index.size(), 1u);
  EXPECT_EQ(to_text(alibi[0].index[0]), "h");

  const auto bias = derivative_arrays(scored("s + f[b, h, k + 1]", data.arguments));
  ASSERT_EQ(bias.size(), 1u);
  EXPECT_EQ(to_text(bias[0].factor), "1.0");
  ASSERT_EQ(bias[0].index.size(), 3u);
  EXPECT_EQ(to_text(bias[0].index[2]), "k + 1");
  EXPECT_EQ(bias[0].index[2].top().type, Type::integer);

  const auto two = derivative_arrays(
      scored("s * slopes[h] + slopes[h_kv] + table[k] + slopes[h] * 0.5", data.arguments));
  ASSERT_EQ(two.size(), 2u);  // slopes[h] is one read, slopes[h_kv] another; table is of ints
  EXPECT_EQ(to_text(two[0].factor), "s + 0.5");
  EXPECT_EQ(to_text(two[1].factor), "1.0");
  EXPECT_TRUE(derivative_arrays(scored("s + floor(slopes[h])", data.arguments)).empty());
}

TEST(LangDerivative, Kinks) {
  EXPECT_EQ(slope_at("abs(s)", 0.0), 0.0);
  EXPECT_EQ(slope_at("abs(s)", -0.5), -1.0);
  EXPECT_EQ(slope_at("min(s, 2 * s)", 0.0), 1.0);  // a tie goes to the first argument
  EXPECT_EQ(slope_at("min(2 * s, s)", 0.0), 2.0);
  EXPECT_EQ(slope_at("max(s, 2 * s)", 0.0), 1.0);
  EXPECT_EQ(slope_at("max(2 * s, s)", 0.0), 2.0);
  EXPECT_EQ(slope_at("max(s, 2 * s)", 1.0), 2.0);
}

TEST(LangDerivative, BranchesNotChosenNeverProduceNaN) {
  EXPECT_EQ(slope_at("where(s > 0, log(s), 0)", -1.0), 0.0);
  EXPECT_EQ(slope_at("where(s > 0, sqrt(s), s)", 0.0), 1.0);
  EXPECT_EQ(slope_at("sqrt(where(s > 0, s, 0))", -1.0), 0.0);
  EXPECT_EQ(slope_at("where(causal, s, 0) / (q - k)", 1.0, 3, 5), 0.0);
  EXPECT_EQ(slope_at("log(max(s, 0))", -1.0), 0.0);
  EXPECT_EQ(slope_at("inf * where(causal, s, 1)", 1.0, 0, 1), 0.0);
  EXPECT_EQ(slope_at("exp(where(causal, s, -inf)) * where(causal, 1 / (q - k), 1)", 0.5, 1, 2), 0);
  EXPECT_EQ(slope_at("sqrt(abs(s))", 0.0), 0.0);
}

// Against the reference, where a factor 0 meets the pole of a root, a logarithm or a quotient.
TEST(LangDerivative, WhatDoesNotMoveAddsNothingBesideAPole) {
  const std::vector<double> x = {0.0, 0.25, -0.0};
  const std::vector<Argument> arguments = {{"x", TensorView(x.data(), {3})}, {"none", 0.0}};
  const reference::Array array{{3}, reference::Type::real, {}, x};
  for (const char* text :
       {"sqrt(abs(s) * x[h])", "sqrt(x[h] * s) + s", "sqrt(abs(s) * none) + x[h]",
        "sqrt(s * 0.0) - s", "sqrt(s * s * x[h])", "log(s * x[h])", "s * x[h] / (q - k)",
        "2.0 * sqrt(abs(s * x[h])) - 0.5 * s", "causal ? sqrt(abs(s) * x[h]) : log(x[h] * s)",
        "softcap(sqrt(abs(s) * x[h]), 2.0)", "softcap(s + 0.5, x[h])", "tanh(s / none - 1.0)",
        "exp(-1.0 / (s * s * x[h]))"}) {
    const reference::Expression expected(text, reference::Kind::score,
                                         {{"x", array}, {"none", 0.0}});
    const Program score = scored(text, arguments);
    for (const double s : {0.0, 1.5, -2.0}) {
      for (std::size_t h = 0; h < x.size(); ++h) {
        reference::Pair pair;
        pair.s = s, pair.h = static_cast<std::int64_t>(h), pair.q = 3, pair.k = 3;
        double slope = 0.0, array_slope = 0.0, found = 0.0;
        for (const auto& [variable, change] : expected.score_tangent(pair)) {
          (variable.array == nullptr ? slope : array_slope) += change;
        }
        const auto same = [](double a, double b) {
          return std::isnan(a) ? std::isnan(b) : a == b || std::fabs(a - b) < 1e-14 * std::fabs(a);
        };
        const double by_logit = value(derivative_logit(score), pair).real;
        EXPECT_TRUE(same(slope, by_logit))
            << text << " s " << s << " x " << x[h] << ": " << by_logit << ", not " << slope;
        for (const ArrayDerivative& one : derivative_arrays(score)) {
          found += value(one.factor, pair).real;
        }
        EXPECT_TRUE(same(array_slope, found))
            << text << " s " << s << " x " << x[h] << ", d x: " << found << ", not " << array_slope;
      }
    }
  }
}

// Whether every value that the root is computed from, branches not chosen left out, is finite:
// through an infinity the function may be smooth and its derivative no number.
bool finite(const Program& score, const reference::Pair& pair) {
  const std::vector<Value> all = values(score, pair);
  const auto of = [&](std::int32_t node) { return all[static_cast<std::size_t>(node)]; };
  std::vector<bool> counts(score.nodes.size(), false);
  counts[static_cast<std::size_t>(score.root)] = true;
  for (std::size_t i = score.nodes.size(); i-- > 0;) {
    if (!counts[i]) continue;
    const Node& node = score.nodes[i];
    if (node.type == Type::real && !std::isfinite(all[i].real)) return false;
    const bool either = node.op == Op::minimum || node.op == Op::maximum;
    for (std::size_t j = 0; j < node.operands; ++j) {
      const Value operand = of(node.operand[j]);
      if (node.op == Op::select && j != (of(node.operand[0]).integer != 0 ? 1 : 2)) continue;
      if (either && node.type == Type::real && operand.real != all[i].real) continue;
      counts[static_cast<std::size_t>(node.operand[j])] = true;
    }
  }
  return true;
}

// Sets the derivative against differences in both directions and of two sizes; points where
// those disagree (kinks, steps, overflow) say nothing.
struct Difference {
  double value;
  bool clear;
};

Difference difference(const Program& score, const reference::Pair& pair, std::int32_t variable) {
  const auto shifted = [&](double step) {
    return values(score, pair, variable, step)[static_cast<std::size_t>(score.root)].real;
  };
  const double here = shifted(0.0);
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const double step : {1e-6, -1e-6, 3e-6, -3e-6}) {
    const double estimate = (shifted(step) - here) / step;
    if (!std::isfinite(estimate)) return {0.0, false};
    low = std::min(low, estimate);
    high = std::max(high, estimate);
  }
  const double size = std::max({1.0, std::fabs(low), std::fabs(high)});
  return {(low + high) / 2, high - low < 1e-3 * size && std::fabs(here) < 1e5};
}

TEST(LangDerivative, FiniteDifferences) {
  std::mt19937 random(17);
  const Data data(random);
  RandomText texts(random, Kind::score);
  int compared = 0;
  int nonzero = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::string text = texts.real(5);
    const Program score = scored(text, data.arguments);
    const Program by_logit = derivative_logit(score);
    const std::vector<ArrayDerivative> by_array = derivative_arrays(score);
    for (int j = 0; j < 4; ++j) {
      const reference::Pair pair = random_pair(random);
      if (!finite(score, pair)) continue;
      const auto compare = [&](std::int32_t variable, double found) {
        const Difference expected = difference(score, pair, variable);
        if (!expected.clear) return;
        ++compared;
        nonzero += expected.value != 0.0 ? 1 : 0;
        ASSERT_NEAR(found, expected.value, 2e-3 * std::max(1.0, std::fabs(expected.value)))
            << text << "\nd node " << variable << ", s = " << pair.s;
      };
      for (std::size_t n = 0; n < score.nodes.size(); ++n) {
        const Node& node = score.nodes[n];
        const auto variable = static_cast<std::int32_t>(n);
        if (node.op == Op::name && node.name == Name::s) {
          compare(variable, value(by_logit, pair).real);
        }
        if (node.op != Op::load || node.type != Type::real) continue;
        double found = 0.0;  // a read without an entry does not matter
        for (const ArrayDerivative& one : by_array) {
          bool same = one.array == node.slot;
          for (std::size_t dim = 0; same && dim < node.operands; ++dim) {
            const auto from = static_cast<std::size_t>(node.operand[dim]);
            const Builder builder(score);
            same =
                to_text(one.index[dim]) == to_text(builder.finish(static_cast<std::int32_t>(from)));
          }
          if (same) found = value(one.factor, pair).real;
        }
        compare(variable, found);
      }
    }
  }
  EXPECT_GT(compared, 5000);
  EXPECT_GT(nonzero, 2000);
}

}  // namespace
}  // namespace onepass::lang
