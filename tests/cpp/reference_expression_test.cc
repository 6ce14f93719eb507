// The reference's own reading of the mask and score language.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "reference/expression.h"

namespace onepass::reference {
namespace {

bool visible(const std::string& text, const Pair& pair = {}, std::vector<Argument> args = {},
             const std::string& definitions = "") {
  return Expression(text, Kind::mask, std::move(args), definitions).visible(pair);
}

double score(const std::string& text, const Pair& pair = {}, std::vector<Argument> args = {}) {
  return Expression(text, Kind::score, std::move(args)).score(pair);
}

Pair at(std::int64_t q, std::int64_t k) {
  Pair pair;
  pair.q = pair.row = q, pair.k = pair.col = k;
  return pair;
}

TEST(ReferenceExpression, PrecedenceAndTypes) {
  EXPECT_EQ(score("1 + 2 * 3"), 7.0);
  EXPECT_EQ(score("-3 // 8"), -1.0);
  EXPECT_EQ(score("-3 % 8"), 5.0);
  EXPECT_EQ(score("7 / 2"), 3.5);
  EXPECT_EQ(score("10 - 3 - 2"), 5.0);
  EXPECT_EQ(score("true ? 1 : false ? 2 : 3"), 1.0);
  EXPECT_EQ(score("min(3, 2.5) + max(1, 2) + abs(-4) + floor(-0.5)"), 7.5);
  EXPECT_EQ(score("7.5 // 2 + 7.5 % 2"), 4.5);
  EXPECT_TRUE(visible("1 < 2 <= 2 & !(3 < 2)"));
  EXPECT_TRUE(visible("false & false | true"));
  EXPECT_FALSE(visible("1 < 3 < 2"));
  EXPECT_TRUE(visible("! false == true"));
  EXPECT_TRUE(visible("q // (k - k) == 0 & q % (k - k) == 0", at(5, 3)));
}

TEST(ReferenceExpression, MasksComputeInFloat32) {
  EXPECT_TRUE(visible("0.1 + 0.2 == 0.3 + 0.00000001"));  // equal in float32 only
  EXPECT_TRUE(visible("q * 1.0 == 16777216.0", at(16777217, 0)));
  EXPECT_EQ(score("q * 1.0", at(16777217, 0)), 16777217.0);
}

TEST(ReferenceExpression, IntegersWrap) {
  const auto most = std::numeric_limits<std::int64_t>::max();
  EXPECT_TRUE(visible("q + 1 < 0 & -(q + 1) == q + 1 & abs(q + 1) == q + 1", at(most, 0)));
  EXPECT_TRUE(visible("(q + 1) // k == q + 1 & (q + 1) % k == 0", at(most, -1)));
}

TEST(ReferenceExpression, NamedForms) {
  EXPECT_TRUE(visible("full") && visible("null"));
  EXPECT_TRUE(visible("causal", at(3, 3)) && !visible("causal", at(3, 4)));
  EXPECT_TRUE(visible("window(2, 1)", at(5, 3)) && !visible("window(2, 1)", at(5, 2)));
  EXPECT_TRUE(visible("window(-1, 1)", at(5, 0)) && !visible("window(-1, 1)", at(5, 7)));
  EXPECT_TRUE(visible("chunked(4)", at(5, 7)) && !visible("chunked(4)", at(5, 8)));
  EXPECT_TRUE(visible("chunked(4)", at(-1, -4)) && !visible("chunked(4)", at(-1, 0)));
  EXPECT_FALSE(visible("chunked_causal(4)", at(5, 7)));
  EXPECT_FALSE(visible("sliding_window_causal(2)", at(5, 3)));
  EXPECT_TRUE(visible("sliding_window_noncausal(2)", at(5, 9)));
  EXPECT_TRUE(visible("prefix(3)", at(0, 2)) && !visible("prefix(3)", at(0, 3)));
  EXPECT_TRUE(visible("sink_window(1, 2)", at(9, 0)) && !visible("sink_window(1, 2)", at(9, 1)));
  Pair pair;
  pair.s = 3.0;
  EXPECT_EQ(score("softcap(s, 2)", pair), 2.0 * std::tanh(1.5));
}

TEST(ReferenceExpression, ArraysAndOverloadsByRank) {
  const Argument ids2{"ids", Array{{1, 4}, Type::integer, {7, 7, 9, 9}, {}}};
  const Argument ids1{"ids", Array{{4}, Type::integer, {7, 7, 9, 9}, {}}};
  Pair pair = at(0, 1);
  pair.token_q = 2, pair.token_k = 3;
  EXPECT_TRUE(visible("document(ids)", pair, {ids2}));
  EXPECT_TRUE(visible("document(ids)", pair, {ids1}));
  pair.b = 5;  // a dim of size 1 accepts any index
  EXPECT_TRUE(visible("document(ids)", pair, {ids2}));
  EXPECT_FALSE(visible("document(ids)", at(0, 2), {ids2}));
  EXPECT_TRUE(visible("ids[0, k] == 0", at(0, 4), {ids2}));  // outside reads 0
  EXPECT_TRUE(visible("ids[0, k] == 0", at(0, -1), {ids2}));
  const Argument limit{"n", Array{{}, Type::integer, {3}, {}}};
  EXPECT_TRUE(visible("prefix(n)", at(0, 2), {limit}) && !visible("prefix(n)", at(0, 3), {limit}));
  EXPECT_EQ(
      score("m[ids[0, k] - 7]", at(0, 2), {ids2, {"m", Array{{3}, Type::real, {}, {1, 2, 4}}}}),
      4.0);
}

TEST(ReferenceExpression, CallersDefinitions) {
  const std::string definitions =
      "near(a, n) = abs(q - a) <= n; mine = near(k, 2) | k == 0\nall = true";
  EXPECT_TRUE(visible("mine", at(9, 8), {}, definitions));
  EXPECT_TRUE(visible("mine", at(9, 0), {}, definitions));
  EXPECT_FALSE(visible("mine & all", at(9, 5), {}, definitions));
  const std::string by_rank = "few(n) = k < n\nfew(n) = k < n[b]";
  const Argument limits{"n", Array{{2}, Type::integer, {3, 9}, {}}};
  EXPECT_TRUE(visible("few(2)", at(0, 1), {}, by_rank));
  EXPECT_FALSE(visible("few(n)", at(0, 3), {limits}, by_rank));
  for (const char* refused : {"causal = true", "lengths(x) = k < x", "abs = true", "f(x, x) = true",
                              "f(x) = x; f(y) = y", "f = nobody < 1", "f(x) = x < x[b]", "f = "}) {
    EXPECT_THROW(visible("full", {}, {}, refused), std::invalid_argument) << refused;
  }
}

TEST(ReferenceExpression, SpecialValues) {
  EXPECT_EQ(score("k > q ? -inf : s", at(0, 1)), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(score("min(1.0, log(-1))")));
  EXPECT_TRUE(std::isnan(score("max(log(-1), 1.0)")));
  EXPECT_EQ(score("where(k > q, log(-1), 2)", at(0, 0)), 2.0);
  const std::vector<Argument> zero = {{"z", 0.0}};
  EXPECT_FALSE(visible("z / z == z / z", {}, zero) || !visible("z / z != 1.0", {}, zero));
}

TEST(ReferenceExpression, RefusesWhatHasNoMeaning) {
  for (const char* text : {"q",
                           "kk <= q",
                           "k <=",
                           "exp(1.0) > 0.0",
                           "s > 0.0",
                           "q & k",
                           "!q",
                           "q // 0",
                           "q % 0",
                           "q / 0.0 < 1",
                           "chunked(-0)",
                           "causal()",
                           "window(1)",
                           "(k <= q",
                           "k <= q)",
                           "true + 1 > 0",
                           "1 < true",
                           "full[0]",
                           "99999999999999999999 > k",
                           "loop"}) {
    EXPECT_THROW(visible(text, {}, {}, "loop = loop"), std::invalid_argument) << text;
  }
  const Argument array{"m", Array{{2}, Type::real, {}, {1, 2}}};
  for (const char* text : {"m", "m[0, 0]", "m[s]", "m[1.0]", "m[s > 0 ? 1 : 0]", "k < q"}) {
    EXPECT_THROW(score(text, {}, {array}), std::invalid_argument) << text;
  }
}

}  // namespace
}  // namespace onepass::reference
