// Masks whose tiles are classified exactly: `skip` iff no pair is visible, `full` iff all are, for
// any range of rows and keys.
#include <gtest/gtest.h>

#include <cstdio>
#include <random>

#include "mask_reader.h"

namespace onepass::lang {
namespace {

class IntervalExact : public testing::TestWithParam<const char*> {
 protected:
  std::int64_t between(std::int64_t lo, std::int64_t hi) {  // inclusive
    return std::uniform_int_distribution<std::int64_t>(lo, hi)(random_);
  }

  /// Non-decreasing, in runs of random lengths, with gaps between the values.
  std::vector<std::int32_t> rising(std::int64_t count) {
    std::vector<std::int32_t> ids;
    const std::int64_t longest = between(1, 80);
    for (std::int32_t id = static_cast<std::int32_t>(between(-3, 3));
         static_cast<std::int64_t>(ids.size()) < count;
         id += static_cast<std::int32_t>(between(1, 4))) {
      ids.insert(ids.end(), static_cast<std::size_t>(between(1, longest)), id);
    }
    ids.resize(static_cast<std::size_t>(count));
    return ids;
  }

  std::mt19937_64 random_{20240607};
};

TEST_P(IntervalExact, AtAnyTile) {
  std::int64_t tiles = 0, skipped = 0, full = 0;
  for (int trial = 0; trial < 60 && !HasFailure(); ++trial) {
    Scope scope;
    scope.b = between(0, 1);
    scope.s_q = between(1, 150);
    scope.s_kv = between(1, 260);
    scope.q_start =
        trial % 3 == 0 ? between(0, 200) : std::max<std::int64_t>(scope.s_kv - scope.s_q, 0);
    scope.k_start = trial % 5 == 0 ? between(0, 90) : 0;
    // This sequence's tokens begin at some place of the packed ones.
    const std::int64_t token = between(0, 60);
    scope.token_q_start = scope.q_start + token;
    scope.token_k_start = scope.k_start + token;
    const std::int64_t positions = 500;  // every position and token of the scope lies inside
    std::vector<std::int32_t> ids = rising(positions);
    const std::vector<std::int32_t> others = rising(positions);
    ids.insert(ids.end(), others.begin(), others.end());
    const std::vector<std::int64_t> lengths = {between(-5, 260), between(-5, 260)};
    const std::vector<Argument> arguments = {
        {"ids", TensorView(ids.data(), DType::int32, {2, positions})},
        {"flat", TensorView(ids.data(), DType::int32, {positions})},
        {"lengths_of", TensorView(lengths.data(), DType::int64, {2})},
        {"n", between(-2, 90)},
        {"size", between(1, 90)},
        {"l", between(-3, 60)},
        {"r", between(-20, 60)}};
    const Result<Program> mask = compile(GetParam(), Kind::mask, arguments);
    ASSERT_TRUE(mask.ok()) << mask.status().message;

    const VisibleCounts truth(mask.value(), scope);
    const MaskReader reader(mask.value(), scope);
    const auto check = [&](const TileRange& tile) {
      const TileKind right = truth.kind(tile);
      const TileKind kind = reader.classifier.classify(tile);
      EXPECT_EQ(kind, right) << to_text(mask.value()) << " trial " << trial << " " << line_of(scope)
                             << " " << line_of(tile) << " is called " << name(kind) << ", is "
                             << name(right);
      ++tiles;
      skipped += right == TileKind::skip;
      full += right == TileKind::full;
    };
    for (std::int64_t row = 0; row < scope.s_q; row += 64) {
      for (std::int64_t col = 0; col < scope.s_kv; col += 64) {
        check({row, std::min(row + 64, scope.s_q), col, std::min(col + 64, scope.s_kv)});
      }
    }
    for (int i = 0; i < 400; ++i) {
      const std::int64_t row = between(0, scope.s_q - 1);
      const std::int64_t col = between(0, scope.s_kv - 1);
      const std::int64_t most = i % 2 == 0 ? 300 : 12;
      check({row, std::min(row + between(1, most), scope.s_q), col,
             std::min(col + between(1, most), scope.s_kv)});
    }
  }
  EXPECT_LT(skipped + full, tiles);
  EXPECT_GT(skipped + full, 0);
}

INSTANTIATE_TEST_SUITE_P(Forms, IntervalExact,
                         testing::Values("causal", "window(l, r)", "window(n, 0)", "window(-1, r)",
                                         "sliding_window_causal(n)", "sliding_window_noncausal(n)",
                                         "chunked(size)", "chunked(n)", "chunked_causal(size)",
                                         "prefix(n)", "prefix(lengths_of)", "prefix(lengths_of[b])",
                                         "lengths(lengths_of)", "document(ids)", "document(flat)"));

INSTANTIATE_TEST_SUITE_P(
    Combinations, IntervalExact,
    testing::Values("sink_window(n, l)", "causal & window(l, r)", "causal & document(ids)",
                    "causal & document(flat)", "causal & lengths(lengths_of)",
                    "window(l, r) & lengths(lengths_of) & k >= n", "!(window(l, r))",
                    "prefix(n) & lengths(lengths_of)", "document(ids) & lengths(lengths_of)",
                    "k < n | causal & k >= size", "!causal | k < n & q > size"));

INSTANTIATE_TEST_SUITE_P(
    Comparisons, IntervalExact,
    testing::Values("abs(q - k) <= n", "q - k == n", "k != q", "k - q < q - k + n",
                    "2 * k <= q + n", "3 * k - q >= 2 * q - k + n", "max(k - q, q - k) < n",
                    "k >= max(q - n, size)", "min(q, size) <= k", "k <= min(q, size) & k > q - n",
                    "where(h == 0, causal, k > q)", "k <= q + 0.5", "k * 2.0 > n",
                    "k // size <= q // size", "flat[k] >= size & causal", "k < flat[q]"));

}  // namespace
}  // namespace onepass::lang
