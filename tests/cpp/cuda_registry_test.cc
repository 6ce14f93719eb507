// What calls take on each architecture, through the compiler. Needs NVRTC, but no GPU.
#include <gtest/gtest.h>

#include "core/backward.h"
#include "core/prepare.h"
#include "core/registry.h"
#include "cuda/device.h"
#include "cuda/kernel.h"
#include "cuda_here.h"

namespace onepass {
namespace {

Problem problem(Pass pass, DType dtype, std::int64_t d, const Attention& given = {}) {
  const TensorView q(nullptr, dtype, {2, 100, 8, d}, gpu), k(nullptr, dtype, {2, 300, 2, d}, gpu);
  Attention options = given;
  options.lse = TensorView(nullptr, DType::float32, {2, 8, 100}, gpu);
  Backward backward;
  backward.o = backward.dout = backward.dq = q, backward.dk = backward.dv = k;
  backward.lse = options.lse;
  const Result<Problem> made = pass == Pass::forward
                                   ? validate(q, k, k, q, options)
                                   : validate_backward(q, k, k, backward, options);
  EXPECT_TRUE(made.ok()) << made.status().message;
  return made.value();
}

// The candidate that comes first is taken, as neither it nor any of its kernels spills or lost what
// makes it fast.
void expect_first_taken(const Problem& problem, const char* architecture) {
  const Capabilities card = cuda::capabilities_of(architecture).value();
  const std::string where = problem.line() + " on " + architecture;
  const Result<Plan> plan = compile(problem, card);
  ASSERT_TRUE(plan.ok()) << where << "\n" << plan.status().message;
  EXPECT_EQ(plan.value().kernel, choose(problem, card).value().kernel) << where;
  for (const Refusal& verdict : plan.value().refused) ADD_FAILURE() << where << verdict.reason;
  for (const cuda::KernelSource& source : row_of(plan.value()).sources(problem)) {
    const cuda::CompileReport* report = cuda::find_kernel(source, card).report;
    ASSERT_NE(report, nullptr) << where << " " << source.name;
    EXPECT_EQ(cuda::verdict_on(source, *report), "") << where << " " << source.name;
  }
}

TEST(CudaRegistry, WhatIsTakenDoesNotSpill) {
  ONEPASS_NEED_NVRTC;
  Attention causal, scored;
  causal.mask = "causal";
  scored.mask = "window(255, 0)", scored.score = "softcap(s, 30)", scored.dropout.p = 0.1;
  for (const char* architecture : {"sm_80", "sm_90a"}) {
    for (const std::int64_t d : {64, 128}) {
      expect_first_taken(problem(Pass::forward, DType::bfloat16, d, causal), architecture);
    }
    expect_first_taken(problem(Pass::forward, DType::float16, 256, scored), architecture);
    expect_first_taken(problem(Pass::forward, DType::float32, 80), architecture);
    expect_first_taken(problem(Pass::backward, DType::bfloat16, 128, causal), architecture);
    expect_first_taken(problem(Pass::backward, DType::float32, 64, scored), architecture);
  }
}

TEST(CudaRegistry, OtherCards) {
  ONEPASS_NEED_NVRTC;
  const cuda::Nvrtc& compiler = cuda::nvrtc().value();
  const bool knows_blackwell = compiler.major > 12 || compiler.minor >= 8;
  for (const char* architecture : {"sm_86", "sm_89", "sm_100", "sm_120"}) {
    if (!knows_blackwell && std::string_view(architecture).size() > 5) continue;
    Attention causal;
    causal.mask = "causal";
    expect_first_taken(problem(Pass::forward, DType::bfloat16, 128, causal), architecture);
  }
}

}  // namespace
}  // namespace onepass
