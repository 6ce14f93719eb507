// Which forward kernel a GPU gets, and its source through the compiler. Needs no GPU.
#include <gtest/gtest.h>

#include <tuple>

#include "core/registry.h"
#include "cuda/compile_log.h"
#include "cuda/compiler.h"
#include "cuda/forward_kernels.h"
#include "cuda/kernel.h"
#include "cuda_here.h"

namespace onepass {
namespace {

Result<Problem> problem(DType dtype, std::int64_t d, const Attention& options = {},
                        Device device = gpu, bool float_output = false) {
  const TensorView q(nullptr, dtype, {2, 9, 4, d}, device), k(nullptr, dtype, {2, 9, 2, d}, device);
  const TensorView o(nullptr, float_output ? DType::float32 : dtype, {2, 9, 4, d}, device);
  return validate(q, k, k, o, options);
}

TEST(CudaForwardPlan, CallsGetTheTensorCores) {
  for (const auto& [dtype, d, kernel] : {std::tuple{DType::bfloat16, 64, "cuda.forward.sm90"},
                                         {DType::float16, 256, "cuda.forward.sm90"},
                                         {DType::float32, 64, "cuda.forward.sm80"},
                                         {DType::float32, 260, "cuda.forward.generic"},
                                         {DType::bfloat16, 264, "cuda.forward.sm80"},
                                         {DType::float16, 576, "cuda.forward.sm80"},
                                         {DType::float16, 257, "cuda.forward.generic"},
                                         {DType::bfloat16, 0, "cuda.forward.generic"}}) {
    const Result<Problem> p = problem(dtype, d);
    ASSERT_TRUE(p.ok()) << p.status().message;
    const Result<Plan> plan = make_plan(p.value(), h200());
    ASSERT_TRUE(plan.ok()) << plan.status().message;
    EXPECT_EQ(plan.value().kernel, kernel);
    EXPECT_EQ(plan.value().workspace_bytes, 0);
    for (const Refusal& refusal : plan.value().refused) {
      if (refusal.kernel.rfind("cuda.", 0) == 0) continue;
      EXPECT_NE(refusal.reason.find("tensors on a GPU"), std::string::npos) << refusal.kernel;
    }
  }
}

TEST(CudaForwardPlan, TheTensorCoreKernelSaysWhatItDoesNotTake) {
  const auto reason = [](TensorView q, TensorView k, const Attention& options = {},
                         std::int64_t shared_bytes = 232448) {
    const Result<Problem> p = validate(q, k, k, q, options);
    if (!p.ok()) return p.status().message;
    Capabilities capabilities = h200();
    capabilities.shared_bytes = shared_bytes;
    return cuda::forward_sm80.refuse(p.value(), capabilities);
  };
  const auto has = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  const auto tensor = [](DType dtype, std::int64_t d,
                         const std::vector<std::int64_t>& strides = {}) {
    const std::vector<std::int64_t> shape{2, 9, 4, d};
    return TensorView(nullptr, dtype, shape, strides, gpu);
  };
  const TensorView x = tensor(DType::bfloat16, 64);
  EXPECT_EQ(reason(x, x), "");
  const TensorView wide = tensor(DType::float32, 256);
  EXPECT_EQ(reason(wide, wide, {}, 101376), "");
  for (const std::int64_t d : {264, 320, 384, 512, 576}) {
    EXPECT_EQ(reason(tensor(DType::float16, d), tensor(DType::float16, d), {}, 101376), "");
  }
  has(reason(tensor(DType::float32, 7), tensor(DType::float32, 7)), "its stride 7");
  has(reason(tensor(DType::float32, 260), tensor(DType::float32, 260)), "d, d_v: 260, 260");
  has(reason(tensor(DType::float16, 20), tensor(DType::float16, 20)), "its stride 20");
  has(reason(x, tensor(DType::bfloat16, 64, {9 * 4 * 65, 4 * 65, 65, 1})), "k: its stride");
  has(reason(tensor(DType::bfloat16, 64, {2304, 1, 9, 36}), x), "q: its last dim");
  TensorView odd = x;
  odd.data = reinterpret_cast<void*>(2);
  has(reason(x, odd), "k: its address");
  Attention flat;
  flat.scale = 0.0;
  has(reason(x, x, flat), "scale: 0");
  flat.scale = -1e39;
  has(reason(x, x, flat), "scale: beyond float32");
  has(reason(tensor(DType::bfloat16, 256), tensor(DType::bfloat16, 256), {}, 65536), "device: ");
  EXPECT_EQ(reason(tensor(DType::bfloat16, 256), tensor(DType::bfloat16, 256), {}, 101376), "");
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

// What it and its texts take besides the sums is the most that each tile leaves registers for.
TEST(CudaForwardPlan, SourcesCompileWithoutSpills) {
  ONEPASS_NEED_NVRTC;
  Attention all;
  all.mask = "causal & keys[col] > 0", all.score = "softcap(s, 30) + keys[col]";
  all.args = {{"keys", TensorView(nullptr, DType::float16, {9}, gpu)}};
  all.dropout.p = 0.1;
  all.sink = TensorView(nullptr, DType::float32, {4}, gpu);
  all.lse = TensorView(nullptr, DType::float32, {2, 4, 9}, gpu);
  Attention causal, masked, plain, bare;
  causal.mask = "causal", causal.lse = all.lse, bare.mask = "causal";
  masked.mask = "sink_window(4, 100)";
  for (const auto& [row, dtype, d, options, architecture] :
       {std::tuple{&cuda::forward_generic, DType::float32, 64, &all, "sm_90a"},
        // The largest head dim is the hardest for the registers.
        {&cuda::forward_generic, DType::bfloat16, 576, &all, "sm_80"},
        {&cuda::forward_generic, DType::float16, 0, &plain, "sm_90a"},
        {&cuda::forward_sm90, DType::bfloat16, 64, &plain, "sm_90a"},
        {&cuda::forward_sm90, DType::float16, 64, &causal, "sm_90a"},
        {&cuda::forward_sm90, DType::bfloat16, 64, &all, "sm_90a"},
        {&cuda::forward_sm90, DType::bfloat16, 96, &masked, "sm_90a"},
        {&cuda::forward_sm90, DType::bfloat16, 128, &causal, "sm_90a"},
        {&cuda::forward_sm90, DType::float16, 128, &all, "sm_90a"},
        {&cuda::forward_sm90, DType::bfloat16, 192, &causal, "sm_90a"},
        {&cuda::forward_sm90, DType::bfloat16, 256, &causal, "sm_90a"},
        {&cuda::forward_sm90, DType::bfloat16, 256, &all, "sm_90a"},
        {&cuda::forward_sm80, DType::bfloat16, 64, &plain, "sm_90a"},
        {&cuda::forward_sm80, DType::bfloat16, 64, &causal, "sm_80"},
        {&cuda::forward_sm80, DType::float16, 64, &causal, "sm_90a"},
        {&cuda::forward_sm80, DType::bfloat16, 64, &masked, "sm_90a"},
        {&cuda::forward_sm80, DType::bfloat16, 64, &all, "sm_80"},
        {&cuda::forward_sm80, DType::bfloat16, 96, &causal, "sm_90a"},
        {&cuda::forward_sm80, DType::bfloat16, 128, &plain, "sm_80"},
        {&cuda::forward_sm80, DType::bfloat16, 128, &causal, "sm_80"},
        {&cuda::forward_sm80, DType::float16, 128, &causal, "sm_90a"},
        {&cuda::forward_sm80, DType::bfloat16, 128, &all, "sm_90a"},
        {&cuda::forward_sm80, DType::bfloat16, 256, &causal, "sm_90a"},
        {&cuda::forward_sm80, DType::bfloat16, 256, &all, "sm_80"},
        {&cuda::forward_sm80, DType::bfloat16, 320, &all, "sm_80"},
        {&cuda::forward_sm80, DType::float16, 576, &causal, "sm_90a"},
        {&cuda::forward_sm80, DType::float16, 576, &all, "sm_80"},
        {&cuda::forward_sm80, DType::float32, 64, &causal, "sm_80"},
        {&cuda::forward_sm80, DType::float32, 64, &plain, "sm_80"},
        {&cuda::forward_sm80, DType::float32, 64, &bare, "sm_90a"},
        {&cuda::forward_sm80, DType::float32, 64, &all, "sm_90a"},
        {&cuda::forward_sm80, DType::float32, 112, &all, "sm_90a"},
        {&cuda::forward_sm80, DType::float32, 128, &causal, "sm_90a"},
        {&cuda::forward_sm80, DType::float32, 128, &all, "sm_80"},
        {&cuda::forward_sm80, DType::float32, 256, &causal, "sm_80"},
        {&cuda::forward_sm80, DType::float32, 256, &all, "sm_90a"}}) {
    const Result<Problem> p = problem(dtype, d, *options, gpu, options == &masked);
    ASSERT_TRUE(p.ok()) << p.status().message;
    ASSERT_EQ(row->refuse(p.value(), h200()), "");
    const cuda::KernelSource source = row->sources(p.value()).front();
    const Result<cuda::Compiled> compiled =
        cuda::compile(cuda::nvrtc().value(), source.source(p.value()), architecture);
    ASSERT_TRUE(compiled.ok()) << compiled.status().message;
    const cuda::CompileReport report = cuda::read_compile_log(compiled.value().log);
    EXPECT_EQ(cuda::verdict_on(source, report), "")
        << row->name << " " << name(dtype) << " d=" << d << "\n"
        << compiled.value().log;
  }
}

}  // namespace
}  // namespace onepass
