// Masks of the vector evaluator against one pair at a time: every decision, bit for bit.
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
using Scratch = std::unique_ptr<void, FreeMemory>;

constexpr std::int64_t guard = 64;

// Exactly as many bytes as asked for, filled with ones (NaN, -1), guarded behind.
Scratch scratch_for(const Program& program) {
  const std::int64_t bytes = evaluator_scratch_bytes(program);
  EXPECT_EQ(bytes % 64, 0);
  void* memory = std::aligned_alloc(64, static_cast<std::size_t>(bytes + guard));
  std::memset(memory, 0xff, static_cast<std::size_t>(bytes));
  std::memset(static_cast<char*>(memory) + bytes, 0x5a, guard);
  return Scratch(memory);
}

bool guard_holds(const Program& program, const Scratch& scratch) {
  const char* end = static_cast<const char*>(scratch.get()) + evaluator_scratch_bytes(program);
  return std::all_of(end, end + guard, [](char byte) { return byte == 0x5a; });
}

Scope scope_of(std::int64_t b, std::int64_t h) {
  return {.b = b,
          .h = h,
          .h_kv = h / 2,
          .s_q = ArrayArguments::s_q,
          .s_kv = ArrayArguments::s_kv,
          .q_start = b == 0 ? ArrayArguments::s_kv - ArrayArguments::s_q : -3,
          .k_start = b == 0 ? 0 : 5,
          .token_q_start = 11 * b,
          .token_k_start = 150 * b};
}

// Evaluates all pairs in pieces of several lengths; reports the first pair that differs.
template <class Real>
void check(const Program& program, const Scope& scope, bool int32,
           const std::vector<int>& expected) {
  const Scratch scratch = scratch_for(program);
  Evaluator<Real> evaluator(program, scope, int32, scratch.get());
  const struct {
    int begin, count, offset, length;
  } pieces[] = {
      {0, 150, 0, 150}, {0, 128, 64, 64}, {3, 100, 7, 93}, {70, 80, 1, 1}, {64, 64, 0, 64}};
  for (const auto& piece : pieces) {
    evaluator.begin_keys(piece.begin, piece.count);
    for (std::int64_t row = 0; row < scope.s_q; ++row) {
      std::vector<std::uint8_t> visible(static_cast<std::size_t>(piece.length) + 1, 0xee);
      evaluator.mask_row(row, piece.offset, piece.length, visible.data());
      ASSERT_EQ(visible.back(), 0xee);
      for (int i = 0; i < piece.length; ++i) {
        const std::int64_t col = piece.begin + piece.offset + i;
        ASSERT_EQ(visible[static_cast<std::size_t>(i)],
                  expected[static_cast<std::size_t>(row * scope.s_kv + col)])
            << program.text << "\nrow " << row << " col " << col << " b " << scope.b << " int32 "
            << int32 << " lanes from " << piece.begin << " + " << piece.offset;
      }
    }
  }
  EXPECT_TRUE(guard_holds(program, scratch)) << program.text;
}

void check_everywhere(const Program& program) {
  for (std::int64_t b = 0; b < ArrayArguments::b; ++b) {
    const Scope scope = scope_of(b, 2 - b);
    Oracle<float> oracle(program, scope);
    std::vector<int> expected;
    for (std::int64_t row = 0; row < scope.s_q; ++row) {
      for (std::int64_t col = 0; col < scope.s_kv; ++col) {
        expected.push_back(static_cast<int>(oracle.at(row, col).integer));
      }
    }
    check<float>(program, scope, false, expected);
    if (oracle.met_only_int32()) check<double>(program, scope, true, expected);
    if (testing::Test::HasFatalFailure()) return;
  }
}

Program compiled(const std::string& text, const ArrayArguments& arrays) {
  Result<Program> program = compile(text, Kind::mask, arrays.arguments());
  EXPECT_TRUE(program.ok()) << text << "\n" << program.status().message;
  return program.ok() ? program.value() : Program{};
}

TEST(EvaluateMasks, EveryOperation) {
  const ArrayArguments arrays;
  for (const char* text : {"causal",
                           "window(20, 3)",
                           "chunked_causal(16)",
                           "document(ids)",
                           "document(tok)",
                           "q - 9 < k <= q + 4",
                           "!(k < row) | false & flag",
                           "(k - 80) // 7 == -3",
                           "(k - 80) % -7 == -2",
                           "-7 // (k - 75) == -1",
                           "(k - 75) // h != 2",
                           "k // (k % 5) > 10",
                           "k % (row - 2) == 0",
                           "abs(k - q) <= limit",
                           "min(k, q) == max(row, 3)",
                           "where(k % 2 == 0, k, -k) < 30",
                           "(k < 40 ? keep[row, col] : flag)",
                           "flag == keep[row, k]",
                           "(row < 3) != (col < 70)",
                           "k * 0.1 < q / 3",
                           "k / 0.3 // 1.7 % 2 < 1",
                           "floor(k / 7) == k / 7",
                           "floor(-0.3 * k) < -ratio",
                           "dense4[b, h, row, col] < 0.5",
                           "wide[b, h, row, col] > -1",
                           "dense4[b, h, row, k - 4] != dense4[b, h, row, col]",
                           "dense4[b, h, k, col] <= 1",
                           "table[row, col] >= 0",
                           "table[row, col // 3] < 1",
                           "brain[row, 150 - col] < 1",
                           "half[col] < slopes[b, h]",
                           "half[2 * col] < 1",
                           "bytes[ids[b, k] * 16] < 128",
                           "tok[tok[token_k]] % 2 == 0",
                           "keep[row, k - 10]",
                           "keep[col, row]",
                           "keep[2, 149]",
                           "one < k",
                           "none[k] == 0",
                           "none[0] < 1",
                           "min(half[col], 0.25) == 0.25",
                           "max(dense4[b, h, row, col], brain[row, col]) < 2",
                           "inf > half[col]",
                           "row < 3",
                           "s_q > 5 | h_kv == 0",
                           "keep[row, 1099511627776 * k]",
                           "half[k * k * 1000003 * 10000000019] < 1",
                           "(4611686018427387904 + k) * 4 == k * 4",
                           "k * 3000000000 // 7 % 2 == 0"}) {
    check_everywhere(compiled(text, arrays));
    if (HasFatalFailure()) return;
  }
}

TEST(EvaluateMasks, RandomExpressions) {
  const ArrayArguments arrays;
  RandomExpression random(20240);
  int compared = 0;
  for (int i = 0; i < 600; ++i) {
    const std::string text = random.boolean(2 + i % 4);
    Result<Program> program = compile(text, Kind::mask, arrays.arguments());
    if (!program.ok()) {  // a divisor that folds to 0
      ASSERT_NE(program.status().message.find("is the literal 0"), std::string::npos)
          << text << "\n"
          << program.status().message;
      continue;
    }
    if (program.value().top().op == Op::constant) continue;
    check_everywhere(program.value());
    if (HasFatalFailure()) return;
    ++compared;
  }
  EXPECT_GT(compared, 300);
}

}  // namespace
}  // namespace onepass::lang
