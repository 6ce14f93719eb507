// What every named form expands to, and which overload a call means.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "lang/compile.h"

namespace onepass::lang {
namespace {

std::vector<Argument> arguments() {
  static std::array<std::int64_t, 16> ints{};
  static std::array<float, 16> floats{};
  static std::array<bool, 16> bools{};
  return {
      {"ids", TensorView(ints.data(), DType::int64, {2, 4})},
      {"flat", TensorView(ints.data(), DType::int64, {8})},
      {"slopes", TensorView(floats.data(), {4})},
      {"slopes2", TensorView(floats.data(), {2, 4})},
      {"m", TensorView(bools.data(), DType::boolean, {1, 1, 2, 4})},
      {"bias", TensorView(floats.data(), {1, 1, 2, 4})},
      {"w", std::int64_t{5}},
      {"limit", TensorView(ints.data(), DType::int64, {})},
  };
}

struct Expansion {
  Kind kind;
  const char* text;
  const char* expanded;
};

class Forms : public testing::TestWithParam<Expansion> {};

TEST_P(Forms, ExpandTo) {
  const Expansion& expected = GetParam();
  const Result<Program> program = compile(expected.text, expected.kind, arguments());
  ASSERT_TRUE(program.ok()) << program.status().message;
  EXPECT_EQ(to_text(program.value()), expected.expanded) << expected.text;
}

INSTANTIATE_TEST_SUITE_P(
    Language, Forms,
    testing::Values(Expansion{Kind::mask, "full", "true"}, Expansion{Kind::mask, "null", "true"},
                    Expansion{Kind::mask, "causal", "k <= q"},
                    Expansion{Kind::mask, "window(255, 0)", "q - 255 <= k & k <= q"},
                    Expansion{Kind::mask, "window(-1, w)", "k <= q + w"},
                    Expansion{Kind::mask, "window(3, -1)", "q - 3 <= k"},
                    Expansion{Kind::mask, "window(-1, -1)", "true"},
                    Expansion{Kind::mask, "chunked(64)", "q // 64 == k // 64"},
                    Expansion{Kind::mask, "chunked_causal(w)", "k <= q & q // w == k // w"},
                    Expansion{Kind::mask, "sliding_window_causal(9)", "q - 9 < k & k <= q"},
                    Expansion{Kind::mask, "sliding_window_noncausal(9)", "q - 9 < k"},
                    Expansion{Kind::mask, "sink_window(4, 10)", "k < 4 | q - 10 <= k & k <= q"},
                    Expansion{Kind::mask, "prefix(7)", "k < 7 | k <= q"},
                    Expansion{Kind::mask, "prefix(limit)", "k < limit | k <= q"},
                    Expansion{Kind::mask, "prefix(flat)", "k < flat[b] | k <= q"},
                    Expansion{Kind::mask, "prefix(flat[h])", "k < flat[h] | k <= q"},
                    Expansion{Kind::mask, "lengths(flat)", "k < flat[b]"},
                    Expansion{Kind::mask, "lengths(5)", "k < 5"},
                    Expansion{Kind::mask, "document(ids) & lengths(flat)",
                              "ids[b, q] == ids[b, k] & k < flat[b]"},
                    Expansion{Kind::mask, "document(ids)", "ids[b, q] == ids[b, k]"},
                    Expansion{Kind::mask, "document(flat)", "flat[token_q] == flat[token_k]"},
                    Expansion{Kind::mask, "dense(m)", "m[b, h, row, col]"},
                    Expansion{Kind::score, "softcap(s, 30)", "30.0 * tanh(s / 30.0)"},
                    Expansion{Kind::score, "alibi(s, slopes)", "s - slopes[h] * abs(q - k)"},
                    Expansion{Kind::score, "alibi(s, slopes2)", "s - slopes2[b, h] * abs(q - k)"},
                    Expansion{Kind::score, "bias(s, bias)", "s + bias[b, h, row, col]"},
                    Expansion{Kind::score, "", "s"}));

}  // namespace
}  // namespace onepass::lang
