// Properties of compiled programs: lifted literals, sharing, folding, varies, canonical text, and
// agreement with the reference's own reading of the language.
#include <gtest/gtest.h>

#include <cmath>

#include "lang/compile.h"
#include "tests/cpp/lang_scalar.h"

namespace onepass::lang {
namespace {

Program compiled(const std::string& text, Kind kind = Kind::mask,
                 std::span<const Argument> arguments = {}, const std::string& definitions = "") {
  const Result<Program> program = compile(text, kind, arguments, definitions);
  EXPECT_TRUE(program.ok()) << text << "\n" << program.status().message;
  return program.ok() ? program.value() : compile("full", Kind::mask, {}).value();
}

std::string expanded(const std::string& text, Kind kind = Kind::mask,
                     const std::string& definitions = "") {
  return to_text(compiled(text, kind, {}, definitions));
}

bool same_nodes(const Program& a, const Program& b) {
  if (a.nodes.size() != b.nodes.size() || a.root != b.root) return false;
  for (std::size_t i = 0; i < a.nodes.size(); ++i) {
    const Node& x = a.nodes[i];
    const Node& y = b.nodes[i];
    if (x.op != y.op || x.type != y.type || x.varies != y.varies || x.slot != y.slot ||
        x.name != y.name || x.operand != y.operand || x.integer != y.integer) {
      return false;
    }
    if (x.real != y.real && !(std::isnan(x.real) && std::isnan(y.real))) return false;
  }
  return true;
}

TEST(LangProgram, OtherLiteralsGiveTheSameNodes) {
  const std::pair<const char*, const char*> masks[] = {
      {"window(255, 0)", "window(256, 0)"},
      {"window(255, 7)", "window(7, 7)"},
      {"window(-1, 7)", "window(-9, 12345678901)"},
      {"k < 5 | q < 5", "k < 5 | q < 6"},
      {"k < 5 | q < 5", "k < 8 | q < 8"},
      {"q * 0.5 < k - 2.5", "q * 7.0 < k - 1e9"},
      {"k < 3 * 7 - 2", "k < 2 * 5 - 10"},
      {"k < min(3, 7)", "k < min(9, 2)"},
      {"k < (2 < 3 ? 5 : 6)", "k < (3 < 2 ? 7 : 8)"},
      {"sink_window(4, 100)", "sink_window(5, 4)"},
      {"prefix(17)", "prefix(-17)"},
  };
  for (const auto& [a, b] : masks) {
    EXPECT_TRUE(same_nodes(compiled(a), compiled(b))) << a << " and " << b;
  }
  const auto score = [](const char* text) { return compiled(text, Kind::score); };
  EXPECT_TRUE(same_nodes(score("softcap(s, 30)"), score("softcap(s, 50.5)")));
  EXPECT_TRUE(same_nodes(score("where(q - k < 5, s * 2, s)"), score("where(q - k < 9, s * 7, s)")));
}

TEST(LangProgram, NumberArgumentsGiveTheSameNodes) {
  const auto with = [](std::int64_t w) {
    const std::vector<Argument> arguments{{"w", w}};
    return compiled("window(w, 0) & chunked(w)", Kind::mask, arguments);
  };
  EXPECT_TRUE(same_nodes(with(255), with(2)));
  EXPECT_TRUE(same_nodes(with(255), with(1)));
  EXPECT_FALSE(same_nodes(with(255), with(-1)));
}

TEST(LangProgram, DivisorsZeroAndOneAreConstants) {
  EXPECT_FALSE(same_nodes(compiled("chunked(64)"), compiled("chunked(65)")));
  EXPECT_TRUE(compiled("chunked(64)").parameters.empty());
  EXPECT_TRUE(compiled("k // (8 * 8) == 1").parameters.empty());
  EXPECT_TRUE(compiled("q + 1 < k & k != 0").parameters.empty());
  const Program window = compiled("window(255, 0)");
  ASSERT_EQ(window.parameters.size(), 1u);
  EXPECT_EQ(window.parameters[0].integer, 255);
  EXPECT_EQ(window.parameters[0].type, Type::integer);
  EXPECT_EQ(window.parameters[0].name, "");
}

TEST(LangProgram, NegativeLiteralsAreOneParameter) {
  const Program program = compiled("k > -7");
  ASSERT_EQ(program.parameters.size(), 1u);
  EXPECT_EQ(program.parameters[0].integer, -7);
  EXPECT_EQ(program.nodes.size(), 3u);
  const Program score = compiled("causal ? s : -inf", Kind::score);
  EXPECT_TRUE(score.parameters.empty());
  EXPECT_EQ(to_text(score), "k <= q ? s : -inf");
}

TEST(LangProgram, MasksRoundFloatsToFloat32) {
  const std::vector<Argument> arguments{{"x", 0.1}};
  for (const char* text : {"k * 0.1 < 1", "k * x < 1"}) {
    const Program mask = compiled(text, Kind::mask, arguments);
    ASSERT_EQ(mask.parameters.size(), 1u);
    EXPECT_EQ(mask.parameters[0].real, static_cast<double>(0.1f));
  }
  EXPECT_EQ(compiled("s * x", Kind::score, arguments).parameters[0].real, 0.1);
  EXPECT_EQ(compiled("0.1 + 0.2 == k").parameters[0].real, static_cast<double>(0.1f + 0.2f));
}

TEST(LangProgram, Folding) {
  EXPECT_TRUE(compiled("full & !false").trivial());
  EXPECT_TRUE(compiled("window(-1, -1)").trivial());
  EXPECT_TRUE(compiled("causal | true").trivial());
  EXPECT_TRUE(compiled("q == q & k - k == 0").trivial());
  EXPECT_FALSE(compiled("false").trivial());
  EXPECT_FALSE(compiled("causal").trivial());
  EXPECT_TRUE(compiled("s", Kind::score).trivial());
  EXPECT_TRUE(compiled("s * 1", Kind::score).trivial());
  EXPECT_TRUE(compiled("", Kind::score).trivial());
  EXPECT_FALSE(compiled("s + s", Kind::score).trivial());
  EXPECT_EQ(expanded("!(k < q)"), "q <= k");
  EXPECT_EQ(expanded("!(k < 0.5)"), "!(k < 0.5)");  // differs from k >= 0.5 at NaN
  EXPECT_EQ(expanded("causal ? q < 5 : false"), "k <= q & q < 5");
  EXPECT_EQ(expanded("q % 1 == k * 0"), "true");
  EXPECT_EQ(expanded("s * 0", Kind::score), "s * 0.0");  // NaN stays NaN
  EXPECT_EQ(expanded("9223372036854775807 + 2 < k"), "-9223372036854775807 < k");
  EXPECT_EQ(expanded("-3 // 8 == k & -3 % 8 == q"), "-1 == k & 5 == q");
}

TEST(LangProgram, EqualTermsShareANode) {
  const Program program = compiled("(q - k) * (q - k) < (q - k) + 0");
  EXPECT_EQ(program.nodes.size(), 5u);  // q, k, q - k, product, comparison
  EXPECT_EQ(
      compiled("w + 2 < k & w + 2 < k", Kind::mask, std::vector<Argument>{{"w", std::int64_t{1}}})
          .nodes.size(),
      6u);
}

TEST(LangProgram, OperandsComeFirstAndEveryNodeIsNeeded) {
  std::mt19937 random(7);
  const Data data(random);
  for (int i = 0; i < 500; ++i) {
    const Program program =
        compiled(RandomText(random, Kind::mask).boolean(5), Kind::mask, data.arguments);
    std::vector<bool> used(program.nodes.size(), false);
    used[static_cast<std::size_t>(program.root)] = true;
    std::vector<bool> arrays(program.arrays.size()), parameters(program.parameters.size());
    for (std::size_t n = 0; n < program.nodes.size(); ++n) {
      const Node& node = program.nodes[n];
      std::uint8_t varies = 0;
      for (std::size_t j = 0; j < node.operands; ++j) {
        ASSERT_LT(node.operand[j], static_cast<std::int32_t>(n));
        used[static_cast<std::size_t>(node.operand[j])] = true;
        varies |= program.nodes[static_cast<std::size_t>(node.operand[j])].varies;
      }
      if (node.op != Op::name) {
        EXPECT_EQ(node.varies, varies);
      }
      if (node.op == Op::load) arrays[static_cast<std::size_t>(node.slot)] = true;
      if (node.op == Op::parameter) parameters[static_cast<std::size_t>(node.slot)] = true;
    }
    for (const auto& all : {used, arrays, parameters}) {
      EXPECT_EQ(std::count(all.begin(), all.end(), false), 0);
    }
  }
}

TEST(LangProgram, Varies) {
  const auto varies = [](const char* text) {
    std::mt19937 random(1);
    return compiled(text, Kind::mask, Data(random).arguments).top().varies;
  };
  EXPECT_EQ(varies("row < 3"), varies_query);
  EXPECT_EQ(varies("col < 3"), varies_key);
  EXPECT_EQ(varies("q < 3"), varies_query | varies_batch);
  EXPECT_EQ(varies("ids[b, col] < 3"), varies_key | varies_batch);
  EXPECT_EQ(varies("h < 2 & h_kv < 3"), varies_head);
  EXPECT_EQ(varies("s_kv < 2"), varies_batch);
  EXPECT_EQ(varies("flag"), 0);
  EXPECT_EQ(compiled("s", Kind::score).top().varies, varies_logit);
}

TEST(LangProgram, OwnDefinitions) {
  const std::string definitions =
      "band(n) = abs(q - k) <= n\nnear = band(3); both(x, y) = x & y\n\n two(n) = (n +\n n);";
  EXPECT_EQ(expanded("both(near, causal)", Kind::mask, definitions), "abs(q - k) <= 3 & k <= q");
  EXPECT_EQ(expanded("k < two(q)", Kind::mask, definitions), "k < q + q");
  EXPECT_EQ(expanded("twice(s)", Kind::score, "twice(s) = s + s"), "s + s");
  std::mt19937 random(1);
  const Data data(random);
  const auto with = [&](const char* text, const char* own) {
    return to_text(compiled(text, Kind::mask, data.arguments, own));
  };
  EXPECT_EQ(with("same(ids)", "same(x) = document(x)"), "ids[b, q] == ids[b, k]");
  EXPECT_EQ(with("same(table)", "same(x) = document(x)"), "table[token_q] == table[token_k]");
  EXPECT_EQ(with("pick(table) < pick(w)", "pick(x) = x[h]; pick(x) = x"), "table[h] < w");
  EXPECT_EQ(with("mine", "mine = ids[b, q] < w"), "ids[b, q] < w");
}

TEST(LangProgram, TextMeansTheSameProgram) {
  std::mt19937 random(11);
  const Data data(random);
  for (int i = 0; i < 3000; ++i) {
    const Kind kind = i % 2 == 0 ? Kind::mask : Kind::score;
    RandomText texts(random, kind);
    const std::string text = kind == Kind::mask ? texts.boolean(5) : texts.real(5);
    const Program first = compiled(text, kind, data.arguments);
    const std::string canonical = to_text(first);
    const std::size_t last = canonical.rfind("; ");
    const bool named = last != std::string::npos;
    const Program again = compiled(named ? canonical.substr(last + 2) : canonical, kind,
                                   data.arguments, named ? canonical.substr(0, last) : "");
    for (int j = 0; j < 4; ++j) {
      const reference::Pair pair = random_pair(random);
      const Value a = value(first, pair);
      const Value b = value(again, pair);
      ASSERT_EQ(a.integer, b.integer) << text << "\n" << canonical;
      ASSERT_TRUE(a.real == b.real || (std::isnan(a.real) && std::isnan(b.real))) << text << "\n"
                                                                                  << canonical;
    }
  }
}

TEST(LangProgram, AgreesWithTheReference) {
  std::mt19937 random(5);
  const Data data(random);
  for (int i = 0; i < 4000; ++i) {
    const Kind kind = i % 2 == 0 ? Kind::mask : Kind::score;
    RandomText texts(random, kind);
    const std::string text = kind == Kind::mask ? texts.boolean(4) : texts.real(4);
    const Program program = compiled(text, kind, data.arguments);
    const reference::Expression expected(
        text, kind == Kind::mask ? reference::Kind::mask : reference::Kind::score,
        data.for_reference());
    for (int j = 0; j < 8; ++j) {
      const reference::Pair pair = random_pair(random);
      const Value found = value(program, pair);
      if (kind == Kind::mask) {
        ASSERT_EQ(found.integer != 0, expected.visible(pair)) << text << "\n" << to_text(program);
      } else {
        const double wanted = expected.score(pair);
        if (std::isnan(wanted) && std::isnan(found.real)) continue;
        ASSERT_EQ(found.real, wanted) << text << "\n" << to_text(program);
      }
    }
  }
}

}  // namespace
}  // namespace onepass::lang
