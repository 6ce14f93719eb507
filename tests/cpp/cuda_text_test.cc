// The generated text, compiled as C++, against the vector evaluator (masks: every decision) and one
// pair at a time (scores).
#include <gtest/gtest.h>

#include <memory>

#include "compiled_text.h"
#include "lang/compile.h"
#include "lang/derivative.h"
#include "lang/evaluate.h"
#include "program_oracle.h"
#include "random_expression.h"
#include "reference/expression.h"

namespace onepass::lang {
namespace {

struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};

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

std::vector<float> by_evaluator(const Program& program, const Scope& scope) {
  const std::unique_ptr<void, FreeMemory> scratch(
      std::aligned_alloc(64, static_cast<std::size_t>(evaluator_scratch_bytes(program))));
  Evaluator<float> evaluator(program, scope, false, scratch.get());
  evaluator.begin_keys(0, static_cast<int>(scope.s_kv));
  std::vector<std::uint8_t> visible(static_cast<std::size_t>(scope.s_kv));
  std::vector<float> out;
  for (std::int64_t row = 0; row < scope.s_q; ++row) {
    evaluator.mask_row(row, 0, static_cast<int>(scope.s_kv), visible.data());
    out.insert(out.end(), visible.begin(), visible.end());
  }
  return out;
}

bool only_int32(const Program& program) {
  for (std::int64_t b = 0; b < ArrayArguments::b; ++b) {
    const Scope scope = scope_of(b, 2 - b);
    Oracle<float> oracle(program, scope);
    for (std::int64_t row = 0; row < scope.s_q; ++row) {
      for (std::int64_t col = 0; col < scope.s_kv; ++col) oracle.at(row, col);
    }
    if (!oracle.met_only_int32()) return false;
  }
  return true;
}

TEST(CudaText, MasksDecideAsTheEvaluatorDoes) {
  if (!CompiledTexts::compiler_is_here()) GTEST_SKIP() << "no compiler at " ONEPASS_TEST_CXX;
  const ArrayArguments arrays;
  std::vector<std::string> expressions = {
      "causal",
      "window(20, 3)",
      "window(-1, 3)",
      "chunked_causal(16)",
      "document(ids)",
      "document(tok)",
      "prefix(9)",
      "sink_window(4, 11)",
      "lengths(tok)",
      "q - 9 < k <= q + 4 & keep[row, col]",
      "q - k < 5 & -k <= -row & token_k < token_q + 9",
      "col - k + q > k & k * 2 < q",
      "k - q < 9223372036854775807",
      "inf > half[col] * 1e30",
      "none[k] == 0 & bytes[col] % 8 < 3 & ids[b, col] // -4 == 0",
      "k % (row - 2) == 0"};
  RandomExpression random(555);
  for (int i = 0; i < 100; ++i) {
    expressions.push_back(random.boolean(2 + i % 3) + " & " + random.boolean(1 + i % 3));
  }
  struct Compiled {
    Program program;
    bool int32;
    int number;
  };
  std::vector<Compiled> compiled;
  CompiledTexts texts;
  int limits = 0;
  for (const std::string& text : expressions) {
    const Result<Program> result = compile(text, Kind::mask, arrays.arguments());
    if (!result.ok()) {
      ASSERT_NE(result.status().message.find("is the literal 0"), std::string::npos)
          << result.status().message;
      continue;
    }
    Program program = Result<Program>(result).value();
    if (program.top().op == Op::constant) continue;
    for (const bool int32 : {false, true}) {
      if (int32 && !only_int32(program)) continue;
      const CudaText options{.name = "text", .int32 = int32};
      limits += cuda_text(program, options).find("has_limits = true") != std::string::npos;
      compiled.push_back({program, int32, texts.add(program, options)});
    }
  }
  EXPECT_GT(limits, 20);
  ASSERT_EQ(texts.build(testing::TempDir()), "");
  for (const Compiled& each : compiled) {
    for (std::int64_t b = 0; b < ArrayArguments::b; ++b) {
      const Scope scope = scope_of(b, 2 - b);
      ASSERT_EQ(texts.run(each.number, each.program, scope, {}), by_evaluator(each.program, scope))
          << each.program.text << "\nb " << b << "\n"
          << cuda_text(each.program, {.name = "text", .int32 = each.int32});
    }
  }
}

// Each score, or slope of one, at every pair and special logit, against one pair at a time.
void expect_values(const std::vector<Program>& programs) {
  struct Compiled {
    Program program;
    int number;
  };
  std::vector<Compiled> compiled;
  CompiledTexts texts;
  for (const Program& program : programs) {
    for (const bool fast : {false, true}) {
      for (const bool int32 : {false, true}) {
        const int number = texts.add(program, {.name = "", .int32 = int32, .fast = fast});
        compiled.push_back({program, number});
      }
    }
  }
  ASSERT_EQ(texts.build(testing::TempDir()), "");
  const Scope scope = scope_of(1, 2);
  std::vector<float> logits;
  for (std::int64_t i = 0; i < scope.s_q * scope.s_kv; ++i) {
    const float special[] = {HUGE_VALF, -HUGE_VALF, std::nanf(""), 0.0f, -0.0f};
    logits.push_back(i % 17 == 0 ? special[i / 17 % 5] : std::sin(static_cast<float>(i)) * 20.0f);
  }
  for (const Compiled& each : compiled) {
    Oracle<float> oracle(each.program, scope);
    const std::vector<float> got = texts.run(each.number, each.program, scope, logits);
    for (std::size_t i = 0; i < got.size(); ++i) {
      const auto pair = static_cast<std::int64_t>(i);
      const double want = oracle.at(pair / scope.s_kv, pair % scope.s_kv, logits[i]).real;
      if (std::isnan(want) ? std::isnan(got[i]) : got[i] == want) continue;
      ASSERT_LE(std::fabs(got[i] - want), 4e-6 * std::max(1.0, std::fabs(want)))
          << each.program.text << " logit " << logits[i];
    }
  }
}

TEST(CudaText, Scores) {
  if (!CompiledTexts::compiler_is_here()) GTEST_SKIP() << "no compiler at " ONEPASS_TEST_CXX;
  const ArrayArguments arrays;
  std::vector<Program> programs;
  for (const char* text :
       {"softcap(s, 30)", "s / ratio", "s / half[col]", "bias(s, dense4)", "alibi(s, slopes)",
        "s + brain[row, 2 * col]", "k <= q ? s : -inf", "exp(-abs(s) * 0.1) * log(row + 2)",
        "s // 1.5 + s % 0.7", "min(s, half[col]) - max(s, one)", "sqrt(abs(s)) + floor(s / 3)",
        "tanh(s) * (q - k)", "s", "q", "-(-inf) + s", "where(flag, table[row, col // 3], s)"}) {
    const Result<Program> result = compile(text, Kind::score, arrays.arguments());
    ASSERT_TRUE(result.ok()) << text << "\n" << result.status().message;
    programs.push_back(result.value());
  }
  expect_values(programs);
}

TEST(CudaText, SlopesWhereAFactorOfZeroMeetsAPole) {
  if (!CompiledTexts::compiler_is_here()) GTEST_SKIP() << "no compiler at " ONEPASS_TEST_CXX;
  const ArrayArguments arrays;
  std::vector<Program> programs;
  for (const char* text : {"sqrt(abs(s) * (col % 3))", "log(s * (row - 2)) + s",
                           "exp(log(abs(s) * (col % 2)))", "s * (k % 3) / (q - k)"}) {
    const Result<Program> result = compile(text, Kind::score, arrays.arguments());
    ASSERT_TRUE(result.ok()) << text << "\n" << result.status().message;
    programs.push_back(derivative_logit(result.value()));
    const reference::Expression expected(text, reference::Kind::score, {});
    const Scope scope = scope_of(1, 2);
    Oracle<float> oracle(programs.back(), scope);
    for (reference::Pair pair{.s = 1.5}; pair.row < scope.s_q; ++pair.row) {
      for (pair.col = 0; pair.col < scope.s_kv; ++pair.col) {
        pair.q = pair.row + scope.q_start, pair.k = pair.col + scope.k_start;
        const reference::Tangent tangent = expected.score_tangent(pair);
        const double want = tangent.empty() ? 0.0 : tangent.begin()->second;
        const double got = oracle.at(pair.row, pair.col, 1.5).real;
        ASSERT_TRUE(got == want || std::fabs(got - want) <= 1e-6 * std::fabs(want))
            << text << " row " << pair.row << " col " << pair.col << ": " << got << " not " << want;
      }
    }
  }
  expect_values(programs);
}

}  // namespace
}  // namespace onepass::lang
