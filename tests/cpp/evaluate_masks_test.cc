// Masks of the vector evaluator against one pair at a time: every decision, bit for bit.
#include <gtest/gtest.h>

#include "lang/compile.h"
#include "lang/evaluate.h"
#include "mask_checks.h"

namespace onepass::lang {
namespace {

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
    check_everywhere<Evaluator>(compiled(text, arrays));
    if (HasFatalFailure()) return;
  }
}

TEST(EvaluateMasks, MostKeysAtOnce) {
  const ArrayArguments arrays;
  const Program program = compiled("half[col - 900] < 1 | k % 3 == row & k - q < 2", arrays);
  const Scope scope{.b = 0, .s_q = 4, .s_kv = 4096, .q_start = 1200};
  const Scratch scratch = scratch_for(program);
  Evaluator<float> evaluator(program, scope, true, scratch.get());
  Oracle<float> oracle(program, scope);
  const std::int64_t begin = 777;
  evaluator.begin_keys(begin, max_keys);
  for (const int offset : {0, 1, 448, 511}) {
    const int count = max_keys - offset;
    for (std::int64_t row = 0; row < scope.s_q; ++row) {
      std::vector<std::uint8_t> visible(static_cast<std::size_t>(count));
      evaluator.mask_row(row, offset, count, visible.data());
      for (int i = 0; i < count; ++i) {
        ASSERT_EQ(visible[static_cast<std::size_t>(i)], oracle.at(row, begin + offset + i).integer)
            << "row " << row << " lane " << offset + i;
      }
    }
  }
  EXPECT_TRUE(guard_holds(program, scratch));
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
    check_everywhere<Evaluator>(program.value());
    if (HasFatalFailure()) return;
    ++compared;
  }
  EXPECT_GT(compared, 300);
}

}  // namespace
}  // namespace onepass::lang
