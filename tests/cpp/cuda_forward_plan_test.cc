// Which forward kernel a GPU gets, and its source through the compiler. Needs no GPU.
#include <gtest/gtest.h>

#include <tuple>

#include "core/registry.h"
#include "cuda/compile_log.h"
#include "cuda/compiler.h"
#include "cuda/forward_kernels.h"
#include "cuda_here.h"

namespace onepass {
namespace {

constexpr Device gpu{Device::Kind::cuda, 0};

Result<Problem> problem(DType dtype, std::int64_t d, const Attention& options = {},
                        Device device = gpu) {
  const TensorView q(nullptr, dtype, {2, 9, 4, d}, device), k(nullptr, dtype, {2, 9, 2, d}, device);
  return validate(q, k, k, q, options);
}

Capabilities h200() {
  Capabilities capabilities;
  capabilities.device = gpu;
  capabilities.sm = 90, capabilities.multiprocessors = 132, capabilities.shared_bytes = 232448;
  return capabilities;
}

TEST(CudaForwardPlan, APlainCallGetsTheGenericKernel) {
  const Result<Problem> p = problem(DType::bfloat16, 64);
  ASSERT_TRUE(p.ok()) << p.status().message;
  const Result<Plan> plan = make_plan(p.value(), h200());
  ASSERT_TRUE(plan.ok()) << plan.status().message;
  EXPECT_EQ(plan.value().kernel, "cuda.forward.generic");
  EXPECT_EQ(plan.value().workspace_bytes, 0);
  for (const Refusal& refusal : plan.value().refused) {
    EXPECT_NE(refusal.reason.find("tensors on a GPU"), std::string::npos) << refusal.kernel;
  }
}

TEST(CudaForwardPlan, ReasonsAreNamed) {
  const auto reason = [](const Result<Problem>& p, const Capabilities& capabilities) {
    if (!p.ok()) return p.status().message;
    const Result<Plan> plan = make_plan(p.value(), capabilities);
    if (!plan.ok()) return plan.status().message;
    for (const Refusal& refusal : plan.value().refused) {
      if (refusal.kernel == "cuda.forward.generic") return refusal.reason;
    }
    return std::string("taken");
  };
  const std::int64_t starts[] = {1, 2}, used[] = {4, 4};
  Attention with_starts;
  with_starts.q_start = TensorView(starts, DType::int64, {2});
  Attention with_lengths;
  with_lengths.seqused_k = TensorView(used, DType::int64, {2});
  Attention with_numbers;
  with_numbers.score = "s";
  for (int i = 0; i < 60; ++i) {
    const std::string name = "array_" + std::to_string(i);
    with_numbers.score += " + " + name + "[col]";
    with_numbers.args.push_back({name, TensorView(nullptr, DType::float32, {9}, gpu)});
  }
  EXPECT_NE(reason(problem(DType::float64, 8), h200()).find("dtype: float64"), std::string::npos);
  EXPECT_NE(
      reason(problem(DType::float32, 8, with_starts), h200()).find("q_start, k_start: arrays"),
      std::string::npos);
  EXPECT_NE(reason(problem(DType::float32, 8, with_lengths), h200()).find("seqused_k"),
            std::string::npos);
  EXPECT_NE(reason(problem(DType::float32, 8, with_numbers), h200()).find("args: more than"),
            std::string::npos);
  const Capabilities cpu = cpu_capabilities().value();
  EXPECT_NE(reason(problem(DType::float32, 8, {}, {}), cpu).find("tensors on the CPU"),
            std::string::npos);
}

TEST(CudaForwardPlan, TensorsOfOneCallLieOnOneDevice) {
  const TensorView q(nullptr, DType::float32, {1, 4, 1, 8}, gpu);
  const TensorView host(nullptr, DType::float32, {1, 4, 1, 8});
  const TensorView other(nullptr, DType::float32, {1, 4, 1, 8}, {Device::Kind::cuda, 1});
  EXPECT_EQ(validate(q, host, q, q, {}).status().message,
            "k: lies on the CPU; cuda:0 is needed here; copy it there");
  EXPECT_EQ(validate(q, q, q, other, {}).status().message,
            "o: lies on cuda:1; cuda:0 is needed here; copy it there");
  EXPECT_EQ(validate(host, q, host, host, {}).status().message,
            "k: lies on cuda:0; the CPU is needed here; copy it there");
}

TEST(CudaForwardPlan, SourcesCompileWithoutSpills) {
  ONEPASS_NEED_NVRTC;
  Attention all;
  all.mask = "causal & keys[col] > 0", all.score = "softcap(s, 30) + keys[col]";
  all.args = {{"keys", TensorView(nullptr, DType::float16, {9}, gpu)}};
  all.dropout.p = 0.1;
  all.sink = TensorView(nullptr, DType::float32, {4}, gpu);
  all.lse = TensorView(nullptr, DType::float32, {2, 4, 9}, gpu);
  // The largest head dim is the hardest for the registers.
  for (const auto& [dtype, d, options, architecture] :
       {std::tuple{DType::float32, 64, all, "sm_90a"},
        {DType::bfloat16, 576, all, "sm_80"},
        {DType::float16, 0, Attention{}, "sm_90a"}}) {
    const Result<Problem> p = problem(dtype, d, options);
    ASSERT_TRUE(p.ok()) << p.status().message;
    const Result<cuda::Compiled> compiled =
        cuda::compile(cuda::nvrtc().value(), cuda::generic_forward_source(p.value()), architecture);
    ASSERT_TRUE(compiled.ok()) << compiled.status().message;
    EXPECT_EQ(cuda::read_compile_log(compiled.value().log).spill_bytes, 0)
        << name(dtype) << " d=" << d << "\n"
        << compiled.value().log;
  }
}

}  // namespace
}  // namespace onepass
