// Every decision of a vector evaluator against one pair at a time.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "lang/evaluate.h"
#include "lang/interval.h"
#include "program_oracle.h"
#include "random_expression.h"

namespace onepass::lang {

struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};
using Scratch = std::unique_ptr<void, FreeMemory>;

inline constexpr std::int64_t guard = 64;

// Exactly as many bytes as asked for, filled with ones (NaN, -1), guarded behind.
inline Scratch scratch_for(const Program& program) {
  const std::int64_t bytes = evaluator_scratch_bytes(program);
  EXPECT_EQ(bytes % 64, 0);
  void* memory = std::aligned_alloc(64, static_cast<std::size_t>(bytes + guard));
  std::memset(memory, 0xff, static_cast<std::size_t>(bytes));
  std::memset(static_cast<char*>(memory) + bytes, 0x5a, guard);
  return Scratch(memory);
}

inline bool guard_holds(const Program& program, const Scratch& scratch) {
  const char* end = static_cast<const char*>(scratch.get()) + evaluator_scratch_bytes(program);
  return std::all_of(end, end + guard, [](char byte) { return byte == 0x5a; });
}

inline Scope scope_of(std::int64_t b, std::int64_t h) {
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
template <class Evaluator>
void check(const Program& program, const Scope& scope, bool int32,
           const std::vector<int>& expected) {
  const Scratch scratch = scratch_for(program);
  Evaluator evaluator(program, scope, int32, scratch.get());
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

/// Both sequences, all rows and keys, with 64-bit integers and, where they suffice, 32-bit ones.
template <template <class> class Evaluator>
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
    check<Evaluator<float>>(program, scope, false, expected);
    EXPECT_TRUE(oracle.met_only_int32() || !fits_int32(program, scope)) << program.text;
    if (oracle.met_only_int32()) check<Evaluator<double>>(program, scope, true, expected);
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace onepass::lang
