// Masks that are bounds on row, col and col - row are known as such, exactly; others are not.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "lang/compile.h"
#include "lang/interval.h"

namespace onepass::lang {
namespace {

struct Bounded {
  const char* mask;
  std::function<bool(std::int64_t, std::int64_t)> visible;  // (q, k)
};

Classifier classifier_of(const Program& program, const Scope& scope,
                         std::vector<std::uint64_t>& memory) {
  memory.resize(static_cast<std::size_t>(Summaries::bytes(program, scope.s_q, scope.s_kv)) / 8 +
                16);
  void* aligned = memory.data();
  std::size_t room = memory.size() * 8;
  std::align(64, room - 64, aligned, room);
  return Classifier(program, scope, Summaries(program, scope, aligned));
}

TEST(IntervalBounds, OfMasksThatAreBounds) {
  const std::int64_t lengths[] = {23};
  const std::vector<Argument> arguments = {{"n", TensorView(lengths, DType::int64, {1})}};
  const Bounded masks[] = {
      {"causal", [](auto q, auto k) { return k <= q; }},
      {"window(4, 2)", [](auto q, auto k) { return k >= q - 4 && k <= q + 2; }},
      {"window(-1, 2)", [](auto q, auto k) { return k <= q + 2; }},
      {"lengths(n)", [](auto, auto k) { return k < 23; }},
      {"causal & lengths(n) & q > 20", [](auto q, auto k) { return k <= q && k < 23 && q > 20; }},
      {"sliding_window_causal(5)", [](auto q, auto k) { return k <= q && k > q - 5; }},
  };
  for (const Bounded& mask : masks) {
    const Result<Program> program = compile(mask.mask, Kind::mask, arguments);
    ASSERT_TRUE(program.ok()) << mask.mask;
    const Scope scope{.s_q = 30, .s_kv = 40, .q_start = 10};
    std::vector<std::uint64_t> memory;
    PairBounds bounds{};
    ASSERT_TRUE(classifier_of(program.value(), scope, memory).bounds(&bounds)) << mask.mask;
    for (std::int64_t row = 0; row < scope.s_q; ++row) {
      for (std::int64_t col = 0; col < scope.s_kv; ++col) {
        const bool inside = row >= bounds.row_lo && row <= bounds.row_hi && col >= bounds.col_lo &&
                            col <= bounds.col_hi && col - row >= bounds.diff_lo &&
                            col - row <= bounds.diff_hi;
        ASSERT_EQ(inside, mask.visible(row + 10, col)) << mask.mask << " " << row << " " << col;
      }
    }
  }
}

TEST(IntervalBounds, NotOfOthers) {
  const std::int32_t ids[] = {0, 0, 0, 1, 1, 1, 1, 2, 2, 2};
  const std::vector<Argument> arguments = {{"ids", TensorView(ids, DType::int32, {1, 10})}};
  for (const char* mask : {"chunked(4)", "prefix(3)", "document(ids)", "causal & k % 2 == 0",
                           "k <= q | k == 9", "q != k", "abs(q - k) > 2"}) {
    const Result<Program> program = compile(mask, Kind::mask, arguments);
    ASSERT_TRUE(program.ok()) << mask;
    const Scope scope{.s_q = 10, .s_kv = 10};
    std::vector<std::uint64_t> memory;
    PairBounds bounds{};
    EXPECT_FALSE(classifier_of(program.value(), scope, memory).bounds(&bounds)) << mask;
  }
}

}  // namespace
}  // namespace onepass::lang
