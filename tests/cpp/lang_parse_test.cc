// Precedence and the forms of tokens.
#include <gtest/gtest.h>

#include "lang/compile.h"

namespace onepass::lang {
namespace {

std::string canonical(const std::string& text, Kind kind) {
  const Result<Program> program = compile(text, kind, {});
  return program.ok() ? to_text(program.value()) : program.status().message;
}

struct Reading {
  const char* text;
  const char* grouped;  // the same with every operation in parentheses
};

TEST(LangParse, Precedence) {
  const Reading masks[] = {
      {"q < 2 | k < 3 & h < 4", "(q < 2) | ((k < 3) & (h < 4))"},
      {"q < 2 & k < 3 | h < 4", "((q < 2) & (k < 3)) | (h < 4)"},
      {"q < 2 | k < 3 ? h < 4 : b < 5 | h < 6",
       "((q < 2) | (k < 3)) ? (h < 4) : ((b < 5) | (h < 6))"},
      {"q < 2 ? k < 2 : q < 3 ? k < 3 : k < 4",
       "(q < 2) ? (k < 2) : ((q < 3) ? (k < 3) : (k < 4))"},
      {"q < 2 ? q < 3 ? k < 3 : k < 4 : k < 2",
       "(q < 2) ? ((q < 3) ? (k < 3) : (k < 4)) : (k < 2)"},
      {"q - 2 < k <= q + 3", "((q - 2) < k) & (k <= (q + 3))"},
      {"q < k == h < b", "((q < k) & (k == h)) & (h < b)"},
      {"q > k >= h", "(k < q) & (h <= k)"},
      {"q - k - h == 0", "((q - k) - h) == 0"},
      {"q - k * h // b % s_q + 2 > 0", "((q - (((k * h) // b) % s_q)) + 2) > 0"},
      {"q / k * h < 1", "((q / k) * h) < 1"},
      {"-q * k < 2", "((-q) * k) < 2"},
      {"-q // 4 == k", "((-q) // 4) == k"},
      {"!causal & q < 2", "(!causal) & (q < 2)"},
      {"!causal == causal", "(!causal) == causal"},
      {"- -q < --k", "q < k"},
      {"q-k<2", "(q - k) < 2"},
      {"  q\t<\n 2 ", "q < 2"},
  };
  for (const Reading& reading : masks) {
    EXPECT_EQ(canonical(reading.text, Kind::mask), canonical(reading.grouped, Kind::mask));
    EXPECT_EQ(canonical(reading.text, Kind::mask).find("column"), std::string::npos)
        << canonical(reading.text, Kind::mask);
  }
  EXPECT_NE(canonical("q - (k - h) == 0", Kind::mask), canonical("q - k - h == 0", Kind::mask));
  EXPECT_NE(canonical("(q + k) * h == 0", Kind::mask), canonical("q + k * h == 0", Kind::mask));
}

TEST(LangParse, CanonicalTextKeepsTheGrouping) {
  for (const char* text :
       {"q - (k - h) == 0", "(q + k) * h == 0", "q // (k * h) == 2", "(q // k) * h == 2",
        "!(k <= q & q < 3)", "-(q + k) < 3", "k <= q & (q < 2 | k < 3)", "q - -7 < k"}) {
    const std::string once = canonical(text, Kind::mask);
    EXPECT_EQ(canonical(once, Kind::mask), once) << text;
  }
  EXPECT_EQ(canonical("q // (k * h) == 2", Kind::mask), "q // (k * h) == 2");
  EXPECT_EQ(canonical("(q // k) * h == 2", Kind::mask), "q // k * h == 2");
  EXPECT_EQ(canonical("(q < 2 ? k : h) < 3", Kind::mask), "(q < 2 ? k : h) < 3");
}

TEST(LangParse, Numbers) {
  EXPECT_EQ(canonical("s + 7", Kind::score), "s + 7.0");
  EXPECT_EQ(canonical("s + 0.5", Kind::score), "s + 0.5");
  EXPECT_EQ(canonical("s + 1e-3", Kind::score), "s + 0.001");
  EXPECT_EQ(canonical("s + 2E+3", Kind::score), "s + 2000.0");
  EXPECT_EQ(canonical("s + inf", Kind::score), "s + inf");
  EXPECT_EQ(canonical("k < 9223372036854775807", Kind::mask), "k < 9223372036854775807");
  EXPECT_EQ(canonical("k > -9223372036854775807 - 1", Kind::mask), "-9223372036854775807 - 1 < k");
  EXPECT_EQ(canonical("k < 007", Kind::mask), "k < 7");
}

TEST(LangParse, LongButFlatTextIsFine) {
  std::string text = "k == 2";
  for (int i = 0; i < 1000; ++i) text += " | k == " + std::to_string(i + 3);
  EXPECT_TRUE(compile(text, Kind::mask, {}).ok());
  std::string sum = "s";
  for (int i = 0; i < 1500; ++i) sum += " + q";
  EXPECT_TRUE(compile(sum, Kind::score, {}).ok());
}

}  // namespace
}  // namespace onepass::lang
