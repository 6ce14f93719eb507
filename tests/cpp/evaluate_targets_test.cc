// The evaluator as the CPU kernels of each instruction set compile it: random masks and a score.
#include <gtest/gtest.h>

#include "lang/compile.h"
#include "mask_checks.h"

#if defined(__x86_64__) && !defined(__clang__)

#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
namespace onepass::avx2_test {
constexpr bool fused_multiply_add = true;
#include "lang/evaluate.inl"
template class Evaluator<float>;
template class Evaluator<double>;
}  // namespace onepass::avx2_test
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")
namespace onepass::avx512_test {
constexpr bool fused_multiply_add = true;
#include "lang/evaluate.inl"
template class Evaluator<float>;
template class Evaluator<double>;
}  // namespace onepass::avx512_test
#pragma GCC pop_options

namespace onepass::lang {
namespace {

template <template <class> class Evaluator>
void check_random_masks() {
  const ArrayArguments arrays;
  RandomExpression random(99);
  for (int i = 0; i < 300; ++i) {
    const std::string text = random.boolean(2 + i % 4);
    Result<Program> program = compile(text, Kind::mask, arrays.arguments());
    if (!program.ok() || program.value().top().op == Op::constant) continue;
    check_everywhere<Evaluator>(program.value());
    if (testing::Test::HasFatalFailure()) return;
  }
}

template <class Evaluator>
void check_softcap() {
  Result<Program> program = compile("softcap(s, 30) - 0.1 * k", Kind::score, {});
  const Scope scope = scope_of(0, 1);
  const Scratch scratch = scratch_for(program.value());
  Evaluator evaluator(program.value(), scope, true, scratch.get());
  evaluator.begin_keys(0, 150);
  std::vector<float> s(150);
  for (std::size_t i = 0; i < s.size(); ++i) s[i] = std::sin(static_cast<float>(i)) * 50;
  std::vector<float> out = s;
  evaluator.score_row(2, 0, 150, out.data());
  Oracle<double> oracle(program.value(), scope);
  for (std::size_t i = 0; i < s.size(); ++i) {
    EXPECT_NEAR(out[i], oracle.at(2, static_cast<std::int64_t>(i), s[i]).real, 1e-5);
  }
}

TEST(EvaluateTargets, Avx2) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) GTEST_SKIP() << "no AVX2";
  check_random_masks<avx2_test::Evaluator>();
  check_softcap<avx2_test::Evaluator<float>>();
}

TEST(EvaluateTargets, Avx512) {
  if (!__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512dq") ||
      !__builtin_cpu_supports("avx512vl")) {
    GTEST_SKIP() << "no AVX-512";
  }
  check_random_masks<avx512_test::Evaluator>();
  check_softcap<avx512_test::Evaluator<float>>();
}

}  // namespace
}  // namespace onepass::lang

#endif
