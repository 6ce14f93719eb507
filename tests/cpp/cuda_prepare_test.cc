// The stage between plan and launch: configurations, verdicts, reports. Needs no GPU.
#include <gtest/gtest.h>

#include <map>

#include "core/prepare.h"
#include "core/registry.h"
#include "cuda/kernel.h"
#include "cuda_here.h"
#include "lang/compile.h"
#include "lang/compile_once.h"
#include "lang/cuda_text.h"
#include "random_expression.h"
#include "scoped_variable.h"

namespace onepass {
namespace {

std::string key_of(const lang::Program& program) {
  std::string key;
  lang::add_cuda_text_key(program, key);
  return key;
}

// Over many expressions, short ones so that keys do meet.
TEST(CudaPrepare, EqualKeysAreEqualTexts) {
  const lang::ArrayArguments arrays;
  lang::RandomExpression random(3);
  std::map<std::string, std::string> texts;
  int met = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::string text = random.boolean(i % 3);
    const auto program = lang::compile(text, lang::Kind::mask, arrays.arguments());
    if (!program.ok()) continue;
    const std::string written = lang::cuda_text(program.value(), {.name = "mask_text"});
    const auto [at, is_new] = texts.emplace(key_of(program.value()), written);
    ASSERT_EQ(at->second, written) << text;
    met += !is_new;
    EXPECT_EQ(lang::cuda_text_parameters(program.value()).size(),
              lang::cuda_text_parameter_bytes(program.value()));
  }
  EXPECT_GT(met, 100);
  EXPECT_GT(texts.size(), 500U);
}

Problem problem_with(const Attention& options, DType dtype = DType::bfloat16) {
  const TensorView q(nullptr, dtype, {2, 9, 4, 64}, gpu), k(nullptr, dtype, {2, 9, 2, 64}, gpu);
  Result<Problem> problem = validate(q, k, k, q, options);
  EXPECT_TRUE(problem.ok()) << problem.status().message;
  return problem.value();
}

std::string configuration(const Problem& problem) {
  const Result<Plan> plan = choose(problem, card(90));
  EXPECT_TRUE(plan.ok());
  std::string all;
  for (const cuda::KernelSource& source : row_of(plan.value()).sources(problem)) {
    all += source.name + source.configuration;
  }
  return all;
}

std::string configuration(const Attention& options) { return configuration(problem_with(options)); }

TEST(CudaPrepare, NumbersAreNoPartOfAConfiguration) {
  Attention window, wider, causal, softcap, other_cap;
  window.mask = "window(20, 3)", wider.mask = "window(700, 9)", causal.mask = "causal";
  softcap.score = "softcap(s, 30)", other_cap.score = "softcap(s, 50)";
  EXPECT_EQ(configuration(window), configuration(wider));
  EXPECT_EQ(configuration(softcap), configuration(other_cap));
  EXPECT_NE(configuration(window), configuration(causal));
  EXPECT_NE(configuration(softcap), configuration(Attention{}));
  Attention shifted = causal;
  shifted.q_start = 100, shifted.scale = 0.3;
  EXPECT_EQ(configuration(causal), configuration(shifted));
  EXPECT_NE(configuration(problem_with({}, DType::float16)), configuration(Attention{}));
}

TEST(CudaPrepare, SpillsAreAVerdict) {
  ONEPASS_NEED_NVRTC;
  const cuda::KernelSource spilling{
      "spills_for_a_test", "", [](const Problem&) { return spilling_source("spills_for_a_test"); }};
  EXPECT_EQ(cuda::find_kernel(spilling, card(80)).report, nullptr);
  const auto report = cuda::compile_kernel(spilling, {}, card(80));
  ASSERT_TRUE(report.ok()) << report.status().message;
  const std::string verdict = cuda::verdict_on(spilling, *report.value());
  EXPECT_EQ(verdict.rfind("its compiled kernel spills_for_a_test spills ", 0), 0U) << verdict;
  // Kept: asking again compiles nothing, so that no source is needed.
  cuda::KernelSource without = spilling;
  without.source = nullptr;
  EXPECT_EQ(cuda::compile_kernel(without, {}, card(80)).value(), report.value());
  EXPECT_EQ(cuda::find_kernel(spilling, card(80)).report, report.value());
  EXPECT_EQ(cuda::find_kernel(spilling, card(80)).ready, nullptr);
  EXPECT_EQ(cuda::find_kernel(spilling, card(90)).report, nullptr);
  EXPECT_EQ(cuda::verdict_on(spilling, {}), "");
  EXPECT_NE(cuda::verdict_on(spilling, {.ignored = {"C7510"}}).find("C7510"), std::string::npos);
}

TEST(CudaPrepare, AVerdictMakesWayForTheNextKernel) {
  const TensorView q(nullptr, DType::float32, {1, 9, 1, 64});
  const Problem problem = validate(q, q, q, q, {}).value();
  const Capabilities cpu = cpu_capabilities().value();
  if (cpu.isas.size() < 2) GTEST_SKIP() << "one instruction set: no second kernel";
  const std::string first = choose(problem, cpu).value().kernel;
  const Refusal verdicts[] = {{first, "spills"}};
  Result<Plan> second = choose(problem, cpu, verdicts);
  ASSERT_TRUE(second.ok());
  EXPECT_NE(second.value().kernel, first);
  explain_choice(problem, cpu, second.value());
  EXPECT_NE(explain(second.value()).find("no   " + first + ": spills\n"), std::string::npos);
}

TEST(CudaPrepare, OnTheCpuItIsThePlan) {
  const TensorView q(nullptr, DType::float32, {1, 9, 1, 64});
  EXPECT_EQ(explain(prepare(q, q, q, q)), explain(plan(q, q, q, q)));
}

TEST(CompileOnce, GivesWhatCompileGives) {
  const std::int32_t ids[9] = {}, others[9] = {};
  const auto with = [&](const std::int32_t* data, std::int64_t w) {
    return std::vector<Argument>{{"ids", TensorView(data, DType::int32, {9})}, {"w", w}};
  };
  const auto once = [](const std::vector<Argument>& arguments, const char* text) {
    return lang::compile_once(text, lang::Kind::mask, arguments, "near(n) = q - k < n");
  };
  for (int i = 0; i < 2; ++i) {
    for (const std::int32_t* data : {ids, others}) {
      for (const std::int64_t w : {5, 7}) {
        const auto program = once(with(data, w), "document(ids) & near(w)");
        ASSERT_TRUE(program.ok()) << program.status().message;
        const auto fresh = lang::compile("document(ids) & near(w)", lang::Kind::mask, with(data, w),
                                         "near(n) = q - k < n");
        EXPECT_EQ(key_of(program.value()), key_of(fresh.value()));
        EXPECT_EQ(lang::cuda_text_parameters(program.value()),
                  lang::cuda_text_parameters(fresh.value()));
        EXPECT_EQ(program.value().arrays[0].view.data, data);
      }
    }
    EXPECT_EQ(once(with(ids, 5), "nothing").status().message,
              lang::compile("nothing", lang::Kind::mask, with(ids, 5), "near(n) = q - k < n")
                  .status()
                  .message);
  }
}

}  // namespace
}  // namespace onepass
