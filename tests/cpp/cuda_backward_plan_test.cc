// Which backward kernel a GPU gets, and its sources through the compiler. Needs no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>

#include "core/backward.h"
#include "core/registry.h"
#include "cuda/backward_kernels.h"
#include "cuda/compile_log.h"
#include "cuda/compiler.h"
#include "cuda/kernel.h"
#include "cuda_here.h"

namespace onepass {
namespace {

/// Of q (2, 9, 4, d), k and v (2, 9, 2, d); of every array argument too.
Result<Problem> problem(DType dtype, std::int64_t d, const Attention& options = {},
                        Device device = gpu) {
  const TensorView q(nullptr, dtype, {2, 9, 4, d}, device), k(nullptr, dtype, {2, 9, 2, d}, device);
  const TensorView lse(nullptr, DType::float32, {2, 4, 9}, device);
  Backward backward;
  backward.o = backward.dout = backward.dq = q, backward.dk = backward.dv = k;
  backward.lse = backward.dlse = lse;
  if (dtype == DType::float64) backward.lse.dtype = backward.dlse.dtype = dtype;
  backward.dsink = options.sink;
  for (const Argument& argument : options.args) {
    TensorView gradient = std::get<TensorView>(argument.value);
    gradient.dtype = DType::float32;
    backward.dargs.push_back({argument.name, gradient});
  }
  return validate_backward(q, k, k, backward, options);
}

TEST(CudaBackwardPlan, WorkspaceIsExact) {
  const Result<Problem> plain = problem(DType::float32, 64);
  ASSERT_TRUE(plain.ok()) << plain.status().message;
  const Result<Plan> plan = make_plan(plain.value(), h200());
  ASSERT_TRUE(plan.ok()) << plan.status().message;
  EXPECT_EQ(plan.value().kernel, "cuda.backward.generic");
  // lse and delta of 2 * 4 heads of 9 rows in 128.
  EXPECT_EQ(plan.value().workspace_bytes, 2 * 4 * 2 * 4 * 128);
  // Flags of tiles to take again besides: whether any, of keys, of rows.
  const Result<Problem> narrow = problem(DType::bfloat16, 64);
  ASSERT_TRUE(narrow.ok()) << narrow.status().message;
  EXPECT_EQ(make_plan(narrow.value(), h200()).value().workspace_bytes, 2 * 4 * 2 * 4 * 128 + 768);
  // Of slopes (4) a copy, 256 bytes, for each of 2 * 2 chains; of a dense table in as many chains
  // none.
  Attention options;
  options.score = "alibi(s, slopes) + table[b, h, row, col]";
  options.args = {{"slopes", TensorView(nullptr, DType::float32, {4}, gpu)},
                  {"table", TensorView(nullptr, DType::float32, {2, 4, 900, 9000}, gpu)}};
  const Result<Problem> arrays = problem(DType::float32, 64, options);
  ASSERT_TRUE(arrays.ok()) << arrays.status().message;
  EXPECT_EQ(make_plan(arrays.value(), h200()).value().workspace_bytes, 2 * 4 * 2 * 4 * 128 + 256);
}

// Why a kernel does not take it, or "taken".
std::string reason_of(const char* kernel, const Result<Problem>& p,
                      const Capabilities& capabilities) {
  if (!p.ok()) return p.status().message;
  const Result<Plan> plan = make_plan(p.value(), capabilities);
  if (!plan.ok()) return plan.status().message;
  for (const Refusal& refusal : plan.value().refused) {
    if (refusal.kernel == kernel) return refusal.reason;
  }
  return "taken";
}

TEST(CudaBackwardPlan, TensorCoresTakeWhatTheirCopiesAndSharedMemoryTake) {
  const auto reason = [](const Result<Problem>& p, const Capabilities& capabilities = h200()) {
    return reason_of("cuda.backward.sm80", p, capabilities);
  };
  EXPECT_EQ(reason(problem(DType::bfloat16, 64)), "taken");
  EXPECT_EQ(reason(problem(DType::float16, 128)), "taken");
  EXPECT_EQ(reason(problem(DType::bfloat16, 24)), "taken");
  EXPECT_NE(reason(problem(DType::float32, 64)).find("dtype: float32"), std::string::npos);
  EXPECT_NE(reason(problem(DType::bfloat16, 136)).find("head dims: 136"), std::string::npos);
  EXPECT_NE(reason(problem(DType::bfloat16, 20)).find("q: its rows are not"), std::string::npos);
  Capabilities small = h200();
  small.sm = 86, small.shared_bytes = 101376;
  EXPECT_EQ(reason(problem(DType::bfloat16, 64), small), "taken");
  EXPECT_NE(reason(problem(DType::bfloat16, 128), small).find("101376 bytes of shared memory"),
            std::string::npos);
  EXPECT_EQ(reason_of("cuda.backward.generic", problem(DType::bfloat16, 128), small), "taken");
}

// Their addresses are the GPU's: here they are null.
TEST(CudaBackwardPlan, ArraysAreNotRead) {
  Attention options;
  options.mask = "ids[col] == ids[row]", options.score = "s + table[ids[col]]";
  options.args = {{"table", TensorView(nullptr, DType::float32, {9}, gpu)}};
  for (const DType dtype : {DType::int32, DType::int64}) {
    Attention with_ids = options;
    with_ids.args.push_back({"ids", TensorView(nullptr, dtype, {9}, gpu)});
    const TensorView q(nullptr, DType::bfloat16, {2, 9, 4, 64}, gpu);
    Backward backward;
    backward.o = backward.dout = backward.dq = backward.dk = backward.dv = q;
    backward.lse = TensorView(nullptr, DType::float32, {2, 4, 9}, gpu);
    const Result<Problem> p = validate_backward(q, q, q, backward, with_ids);
    ASSERT_TRUE(p.ok()) << p.status().message;
    for (const cuda::KernelSource& source : cuda::sm80_backward_row.sources(p.value())) {
      const char* const integers =
          dtype == DType::int32 ? "using Int = int;" : "using Int = int64;";
      if (std::string(source.name) != "backward_sm80_keys") continue;
      EXPECT_NE(source.source(p.value()).find(integers), std::string::npos) << name(dtype);
    }
  }
}

TEST(CudaBackwardPlan, ReasonsAreNamed) {
  const auto reason = [](const Result<Problem>& p, const Capabilities& capabilities) {
    return reason_of("cuda.backward.generic", p, capabilities);
  };
  const std::int64_t starts[] = {1, 2}, used[] = {4, 4};
  Attention with_starts;
  with_starts.q_start = TensorView(starts, DType::int64, {2});
  Attention with_lengths;
  with_lengths.seqused_k = TensorView(used, DType::int64, {2});
  Attention with_places, with_arrays;
  with_places.score = "s", with_arrays.mask = "true";
  for (int i = 0; i < 60; ++i) {
    const std::string name = "array_" + std::to_string(i);
    const Argument argument{name, TensorView(nullptr, DType::float32, {9}, gpu)};
    with_arrays.mask += " & " + name + "[col] > 0";
    with_arrays.args.push_back(argument);
    if (i >= 20) continue;
    with_places.score += " * " + name + "[col]";
    with_places.args.push_back(argument);
  }
  EXPECT_EQ(reason(problem(DType::float32, 8), h200()), "taken");
  EXPECT_NE(reason(problem(DType::float64, 8), h200()).find("dtype: float64"), std::string::npos);
  EXPECT_NE(
      reason(problem(DType::float32, 8, with_starts), h200()).find("q_start, k_start: arrays"),
      std::string::npos);
  EXPECT_NE(reason(problem(DType::float32, 8, with_lengths), h200()).find("seqused_k"),
            std::string::npos);
  EXPECT_NE(reason(problem(DType::float32, 8, with_arrays), h200()).find("args: more than"),
            std::string::npos);
  EXPECT_NE(reason(problem(DType::float32, 8, with_places), h200()).find("dargs: the score reads"),
            std::string::npos);
  const Capabilities cpu = cpu_capabilities().value();
  EXPECT_NE(reason(problem(DType::float32, 8, {}, {}), cpu).find("tensors on the CPU"),
            std::string::npos);
}

TEST(CudaBackwardPlan, SourcesCompileWithoutSpills) {
  ONEPASS_NEED_NVRTC;
  Attention all;
  all.mask = "causal & keys[col] > 0", all.score = "softcap(s, 30) + keys[col] + table[row, col]";
  all.args = {{"keys", TensorView(nullptr, DType::float16, {9}, gpu)},
              {"table", TensorView(nullptr, DType::float32, {9, 9}, gpu)}};
  all.dropout.p = 0.1;
  all.sink = TensorView(nullptr, DType::float32, {4}, gpu);
  const Attention causal{.mask = "causal"}, capped{.mask = "causal", .score = "softcap(s, 30)"};
  const Attention dropped{.dropout = {.p = 0.1}};
  Attention capped_dropped = capped, biased;
  capped_dropped.dropout.p = 0.1;
  biased.mask = "causal", biased.score = "bias(s, table)";
  biased.args = {{"table", TensorView(nullptr, DType::float32, {1, 4, 9, 9}, gpu)}};
  const char *const sm80 = "cuda.backward.sm80", *const generic = "cuda.backward.generic";
  const char* const parts = "cuda.backward.sm80_parts";
  // Of the generic kernels the largest head dim is the hardest for the registers. In parts, `all`
  // still spills with NVRTC 12.9, not with 13: such a call then takes the generic kernels.
  for (const auto& [kernel, dtype, d, options, architecture] :
       {std::tuple{generic, DType::float32, 64, all, "sm_90a"},
        {generic, DType::bfloat16, 576, all, "sm_80"},
        {generic, DType::float16, 0, Attention{}, "sm_90a"},
        {sm80, DType::bfloat16, 64, Attention{}, "sm_90a"},
        {sm80, DType::bfloat16, 64, causal, "sm_80"},
        {sm80, DType::bfloat16, 64, dropped, "sm_90a"},
        {sm80, DType::bfloat16, 128, Attention{}, "sm_80"},
        {sm80, DType::float16, 128, causal, "sm_90a"},
        {sm80, DType::bfloat16, 128, capped, "sm_90a"},
        {sm80, DType::bfloat16, 80, causal, "sm_80"},
        {parts, DType::bfloat16, 128, capped_dropped, "sm_90a"},
        {parts, DType::bfloat16, 128, biased, "sm_80"}}) {
    const Result<Problem> p = problem(dtype, d, options);
    ASSERT_TRUE(p.ok()) << p.status().message;
    const auto rows = cuda::backward_kernels();
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const KernelRow& one) {
      return one.name == std::string(kernel);
    });
    ASSERT_EQ(row->refuse(p.value(), h200()), "");
    for (const cuda::KernelSource& source : row->sources(p.value())) {
      // What a tensor-core kernel leaves is taken by those of the generic rows above.
      const bool own = std::string(source.name).find("sm80") != std::string::npos;
      if (kernel != generic && !own) continue;
      const Result<cuda::Compiled> compiled =
          cuda::compile(cuda::nvrtc().value(), source.source(p.value()), architecture);
      ASSERT_TRUE(compiled.ok()) << compiled.status().message;
      EXPECT_EQ(cuda::read_compile_log(compiled.value().log).spill_bytes, 0)
          << kernel << " " << name(dtype) << " d=" << d << " " << source.name << "\n"
          << compiled.value().log;
    }
  }
}

}  // namespace
}  // namespace onepass
