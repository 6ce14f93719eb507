// Malformed text: the column, what was found, what was expected. Never a crash.
#include <gtest/gtest.h>

#include <array>

#include "lang/compile.h"

namespace onepass::lang {
namespace {

std::vector<Argument> arguments() {
  static std::array<std::int64_t, 16> ints{};
  static std::array<float, 16> floats{};
  return {
      {"ids", TensorView(ints.data(), DType::int64, {2, 4})},
      {"slopes", TensorView(floats.data(), {4})},
      {"bias", TensorView(floats.data(), {1, 2, 2, 4})},
      {"limit", TensorView(ints.data(), DType::int64, {})},
      {"w", std::int64_t{5}},
  };
}

std::string message(const std::string& text, Kind kind, const std::string& definitions = "") {
  const Result<Program> program = compile(text, kind, arguments(), definitions);
  if (program.ok()) return "compiles: " + to_text(program.value());
  EXPECT_EQ(program.status().code, Code::invalid_argument);
  return program.status().message;
}

struct Bad {
  const char* text;
  int column;
  const char* says;
};

void expect_all(std::span<const Bad> all, Kind kind) {
  const std::string label = kind == Kind::mask ? "mask" : "score";
  for (const Bad& bad : all) {
    const std::string found = message(bad.text, kind);
    const std::string place = label + ", column " + std::to_string(bad.column) + ": ";
    EXPECT_EQ(found.substr(0, place.size()), place) << bad.text << "\n" << found;
    EXPECT_NE(found.find(bad.says), std::string::npos) << bad.text << "\n" << found;
  }
}

TEST(LangErrors, Masks) {
  const Bad all[] = {
      // Words.
      {"q < 2 & kk < 3", 9, "\"kk\" is not a name here; names: q k row"},
      {"q < 2 & kk < 3", 9, "did you mean k?"},
      {"causl", 1, "did you mean causal?"},
      {"causal & windw(3, 0)", 10, "did you mean window?"},
      {"ids[b, q] == idz[b, k]", 14, "\"idz\" is not an array here; arguments: ids slopes"},
      {"idz[b, q] == 2", 1, "did you mean ids?"},
      {"k < tokenq", 5, "did you mean token_q?"},
      {"k < zebra", 5, "\"zebra\" is not a name here"},
      {"k < zebra", 5, "; pass it with the call, as the argument named zebra"},
      {"zebra[b] > k", 1, "; pass it with the call, as the argument named zebra"},
      {"zebras(3)", 1, "; define it among the call's definitions"},
      {"s < 3", 1, "\"s\" is the logit, which a mask does not see"},
      {"window", 1, "\"window\" takes arguments; write window(l, r)"},
      {"k < abs", 5, "\"abs\" is a function"},
      // Tokens.
      {"k @ 3", 3, "\"@\" is not part of the language"},
      {"k < 3é", 6, "\"é\" is not part of the language"},
      {"k < \x01", 5, "\"\\x01\" is not part of the language"},
      {"k < \xff", 5, "\"\\xFF\" is not part of the language"},
      {"causal && q < 2", 8, "\"&&\" is not an operator here; and is written &"},
      {"causal || q < 2", 8, "or is written |"},
      {"causal and q < 2", 8, "\"and\" is written &"},
      {"causal or q < 2", 8, "\"or\" is written |"},
      {"full & not causal", 8, "\"not\" is written !"},
      {"q ** 2 < 3", 3, "\"**\" is not an operator here"},
      {"q = k", 3, "equality is written =="},
      {"k < 3x", 5, "\"3x\" is not a number"},
      {"k < 1.2.3", 5, "\"1.2.3\" is not a number"},
      {"k < 0x10", 5, "\"0x10\" is not a number"},
      {"k < .5", 5, "\".\" is not part of the language"},
      {"k < 9223372036854775808", 5, "does not fit int64"},
      {"k < 1e999", 5, "does not fit float64"},
      // Syntax.
      {"", 1, "the text ends here; expected a number, a name, a call or \"(\""},
      {"   ", 4, "the text ends here"},
      {"k <", 4, "the text ends here; expected a number"},
      {"k < < 3", 5, "found \"<\"; expected a number"},
      {"(k < 3", 7, "the text ends here; expected an operator or \")\""},
      {"k < 3)", 6, "found \")\"; expected an operator or the end"},
      {"k 3", 3, "found \"3\"; expected an operator or the end"},
      {"window(3, 0", 12, "the text ends here; expected an operator, \",\" or \")\""},
      {"window(3; 0)", 9, "\";\" is not part of the language"},
      {"window(, 0)", 8, "found \",\"; expected a number"},
      {"window(3, 0,)", 13, "found \")\"; expected a number"},
      {"causal()", 1, "write causal alone"},
      {"ids[] == 2", 1, "nothing between the brackets"},
      {"ids[b, q == 2", 14, "the text ends here; expected an operator, \",\" or \"]\""},
      {"q < 2 ? causal", 15, "the text ends here; expected \":\""},
      {"q < 2 ? : causal", 9, "found \":\"; expected a number"},
      {"(q)(k) < 2", 4, "found \"(\"; expected an operator or the end"},
      {"1[2] < 2", 2, "found \"[\"; expected an operator or the end"},
      {"!", 2, "the text ends here"},
      {"q +", 4, "the text ends here"},
      {"+q < 2", 1, "found \"+\"; expected a number"},
      // Types.
      {"q", 1, "this mask has type int; a mask has type bool"},
      {"q + 0.5", 3, "this mask has type float"},
      {"q & causal", 3, "& takes bool, found int"},
      {"causal | q", 8, "| takes bool, found int"},
      {"!q", 1, "! takes bool, found int"},
      {"k + causal < 2", 3, "+ takes numbers, found bool"},
      {"-causal", 1, "- takes numbers, found bool"},
      {"causal < full", 8, "a comparison takes numbers, found bool"},
      {"causal == 1", 8, "a comparison of a bool with a number"},
      {"abs(causal) < 2", 1, "abs takes numbers, found bool"},
      {"q ? causal : full", 3, "the condition has type int; a condition is bool"},
      {"causal ? q : full", 8, "int and bool; both are bool or both are numbers; where(c, 1, 0)"},
      {"where(q, causal, full)", 1, "the condition has type int"},
      {"ids[b, 0.5] == 2", 8, "an index of \"ids\" has type float; indices are ints"},
      {"ids[b, causal] == 2", 8, "an index of \"ids\" has type bool"},
      {"ids[q] == 2", 1, "\"ids\" has 2 dims, found 1 index value"},
      {"slopes[h, q, k] < 2", 1, "\"slopes\" has 1 dim, found 3 index values"},
      {"ids < 2", 1, "\"ids\" is an array of 2 dims; a number is expected here; index it"},
      {"w[h] < 2", 1, "\"w\" is a number; only arrays are indexed"},
      {"q[h] < 2", 1, "\"q\" is a number; only arrays are indexed"},
      {"limit[0] < 2", 1, "\"limit\" is a number"},
      {"q // 0 == k", 3, "the divisor of // is the literal 0; any other number is allowed; divide"},
      {"q % 0 == k", 3, "the divisor of % is the literal 0"},
      {"q / 0.0 < k", 3, "the divisor of / is the literal 0"},
      {"q / -0 < k", 3, "the divisor of / is the literal 0"},
      {"q / 1e-60 < k", 3, "the divisor of / is the literal 0"},  // float32 in masks
      {"exp(q) < 2", 1, "a mask may not use exp"},
      {"k < 2 | log(q) < 2", 9, "a mask may not use log"},
      {"tanh(q) < 2", 1, "a mask may not use tanh"},
      {"sqrt(q) < 2", 1, "a mask may not use sqrt"},
      {"min(q) < 2", 1, "min takes 2 arguments, found 1; write min(a, b)"},
      {"where(causal, q) < 2", 1, "where takes 3 arguments, found 2; write where(c, a, b)"},
      // Definitions.
      {"window(3)", 1, "\"window\" does not take (a number); write window(l, r)"},
      {"document(w)", 1, "does not take (a number); write document(ids[.]), document(ids[.,.])"},
      {"prefix(ids)", 1, "does not take (an array of 2 dims); write prefix(n), prefix(n[.])"},
      {"causal & chunked(0)", 10, "in chunked(n) = q // n == k // n: the divisor of // is"},
      {"causal & chunked(causal)", 10, "in chunked(n) = q // n == k // n: // takes numbers"},
      {"chunked_causal(0)", 1, "in chunked(n) = q // n == k // n: the divisor"},
      {"softcap(q, 3) < 1", 1, "in softcap(s, c) = c * tanh(s / c): a mask may not use tanh"},
      {"dense(bias)", 1, "this mask has type float"},
  };
  expect_all(all, Kind::mask);
}

TEST(LangErrors, Scores) {
  const Bad all[] = {
      {"causal", 1, "this score has type bool; a score has type float"},
      {"s + slopes[s]", 12, "an index of \"slopes\" has type float"},
      {"s + slopes[s < 2 ? 0 : 1]", 18, "an index of \"slopes\" depends on s"},
      {"softcap(s)", 1, "write softcap(s, c)"},
      {"softcap(s, 0)", 1, "the divisor of / is the literal 0"},
      {"alibi(s, bias)", 1, "write alibi(s, slopes[.]), alibi(s, slopes[.,.])"},
      {"ss + 1", 1, "did you mean s?"},
      {"  ", 3, "the text ends here"},
  };
  expect_all(all, Kind::score);
}

TEST(LangErrors, LinesAreCountedWhenThereAreSeveral) {
  EXPECT_EQ(message("causal &\n kk < 3", Kind::mask).substr(0, 24), "mask, line 2, column 2: ");
}

struct BadDefinition {
  const char* definitions;
  const char* place;
  const char* says;
};

TEST(LangErrors, Definitions) {
  const BadDefinition all[] = {
      {"f(n) = k < m", "definitions, column 12: ", "\"m\" is not a name here"},
      {"f(n) = k < n;\n g(n) = nn", "definitions, line 2, column 9: ", "did you mean n?"},
      {"f(n) = hh(n)", "definitions, column 8: ", "\"hh\" is not a function or a definition"},
      {"f(n) = n[b] < m[b]", "definitions, column 15: ", "\"m\" is not an array here"},
      {"f(n = k", "definitions, column 5: ", "\"=\""},
      {"f() = k < 2", "definitions, column 3: ", "expected the name of a parameter"},
      {"f(n, n) = k < n", "definitions, column 6: ", "\"n\" is a parameter twice"},
      {"f(2) = k", "definitions, column 3: ", "expected the name of a parameter"},
      {"f(n)", "definitions, column 5: ", "expected \"=\" and the meaning of f"},
      {"f(n) k < n", "definitions, column 6: ", "expected \"=\""},
      {"3 = k", "definitions, column 1: ", "expected the name of a definition"},
      {"f(n) =", "definitions, column 7: ", "the text ends here"},
      {"f(n) = \n k < n", "definitions, line 1, column 8: ", "the text ends here"},
      {"f(n) = k < n n", "definitions, column 14: ", "expected an operator, \";\""},
      {"q = k", "definitions, column 1: ", "\"q\" has a meaning of its own"},
      {"abs(x) = x", "definitions, column 1: ", "\"abs\" has a meaning of its own"},
      {"f(min) = min", "definitions, column 1: ", "\"min\" has a meaning of its own"},
      {"window(l, r) = k < l", "definitions, column 1: ", "\"window\" is defined already"},
      {"f(n) = k < n; f(m) = q < m", "definitions, column 15: ", "is defined already"},
      {"f(n) = n[b] < n", "definitions, column 15: ", "as an array and as a number"},
      {"f(n) = n[b] < n[b, h]", "definitions, column 15: ", "with 2 and with 1 dims"},
      {"w = k < 2", "definitions, column 1: ", "is also an argument of this call"},
      {"f(n) = k < 1e", "definitions, column 12: ", "\"1e\" is not a number"},
  };
  for (const BadDefinition& bad : all) {
    const std::string found = message("causal", Kind::mask, bad.definitions);
    const std::string place = bad.place;
    EXPECT_EQ(found.substr(0, place.size()), place) << bad.definitions << "\n" << found;
    EXPECT_NE(found.find(bad.says), std::string::npos) << bad.definitions << "\n" << found;
  }
}

TEST(LangErrors, InsideADefinitionOfTheCaller) {
  EXPECT_EQ(message("causal & f(causal)", Kind::mask, "f(n) = k < n"),
            "mask, column 10: in f(n) = k < n: a comparison takes numbers, found bool; only & | ! "
            "== != ?: take bool; turn it into a number with where(c, 1, 0)");
  const std::string itself = message("f(2)", Kind::mask, "f(n) = g(n) & k < n; g(n) = f(n)");
  EXPECT_NE(itself.find("mask, column 1: in g(n) = f(n): \"f\" uses itself"), std::string::npos)
      << itself;
}

TEST(LangErrors, Arguments) {
  const auto with = [](std::vector<Argument> given) {
    const Result<Program> program = compile("causal", Kind::mask, given);
    return program.ok() ? std::string("compiles") : program.status().message;
  };
  EXPECT_EQ(with({{"window", std::int64_t{1}}, {"t1", true}, {"_x", 0.5}}), "compiles");
  EXPECT_NE(with({{"q", std::int64_t{1}}}).find("args: 'q' has a meaning"), std::string::npos);
  EXPECT_NE(with({{"abs", 1.0}}).find("args: 'abs' has a meaning"), std::string::npos);
  EXPECT_NE(with({{"causal", true}}).find("args: 'causal' has a meaning"), std::string::npos);
  EXPECT_NE(with({{"2x", true}}).find("args: '2x' is not a name"), std::string::npos);
  EXPECT_NE(with({{"", true}}).find("args: '' is not a name"), std::string::npos);
  EXPECT_NE(with({{"a", true}, {"a", 0.5}}).find("args: 'a' is given twice"), std::string::npos);
  EXPECT_NE(with({{"a", TensorView()}}).find("args: 'a' has -1 dims"), std::string::npos);
}

std::string repeated(const std::string& part, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += part;
  return out;
}

TEST(LangErrors, LimitsInsteadOfStackOverflow) {
  const int deep = 5000;
  const std::string nested[] = {
      repeated("(", deep) + "k < 2" + repeated(")", deep),
      repeated("-", deep) + "k < 2",
      repeated("!", deep) + "causal",
      repeated("abs(", deep) + "k" + repeated(")", deep) + " < 2",
      repeated("slopes[", deep),
      repeated("causal ? ", deep),
      repeated("causal ? full : ", 2000) + "full",
      repeated("k < (", deep),
  };
  for (const std::string& text : nested) {
    EXPECT_NE(message(text, Kind::mask).find("nested more than 200 deep"), std::string::npos);
  }
  EXPECT_NE(message("k < 2" + repeated(" | k < 2", 3000), Kind::mask).find("4096 terms"),
            std::string::npos);
  EXPECT_NE(message(repeated(" ", 70000), Kind::mask).find("mask: 70000 bytes of text"),
            std::string::npos);

  // Each definition doubles the one before: 2^60 terms when expanded.
  std::string doubling = "d0 = k";
  std::string nesting = "n0 = k";
  for (int i = 1; i <= 60; ++i) {
    const std::string before = std::to_string(i - 1);
    doubling += "; d" + std::to_string(i) + " = d" + before + " + d" + before;
    nesting += "; n" + std::to_string(i) + " = " + repeated("abs(", 150) + "n" + before +
               repeated(")", 150);
  }
  EXPECT_NE(message("d60 < 2", Kind::mask, doubling).find("after definitions are expanded"),
            std::string::npos);
  EXPECT_NE(message("n60 < 2", Kind::mask, nesting).find("after definitions are expanded"),
            std::string::npos);
  std::string many;
  for (int i = 0; i < 300; ++i) many += "f" + std::to_string(i) + " = k;";
  EXPECT_NE(message("causal", Kind::mask, many).find("300 definitions; the limit is 256"),
            std::string::npos);
}

}  // namespace
}  // namespace onepass::lang
