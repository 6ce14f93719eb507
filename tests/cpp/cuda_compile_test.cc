// Kernel text through NVRTC, and what its log says. Needs NVRTC, but no GPU.
#include "cuda/compiler.h"

#include <gtest/gtest.h>

#include "cuda/compile_log.h"
#include "cuda/kernel_text.h"
#include "cuda_here.h"

namespace onepass::cuda {
namespace {

TEST(CudaCompile, EveryKernelForEveryArchitecture) {
  ONEPASS_NEED_NVRTC;
  int kernels = 0;
  for (const TextFile& file : text_files()) {
    if (file.name.substr(0, 13) != "cuda/kernels/") continue;
    // Parts of kernels; and kernels that stand after a problem's config, mask and score, which the
    // tests of their passes compile.
    const bool is_kernel = file.text.find("__global__") != std::string_view::npos;
    if (!is_kernel || file.text.find("config::") != std::string_view::npos) continue;
    ++kernels;
    const std::string source = kernel_text(file.name);
    EXPECT_EQ(source.find("#include"), std::string::npos) << file.name;
    for (const char* architecture : {"sm_80", "sm_90a"}) {
      const Result<Compiled> compiled = compile(nvrtc().value(), source, architecture);
      ASSERT_TRUE(compiled.ok()) << compiled.status().message;
      EXPECT_EQ(compiled.value().cubin.substr(1, 3), "ELF");
      const CompileReport report = read_compile_log(compiled.value().log);
      EXPECT_GT(report.registers, 0) << compiled.value().log;
      EXPECT_EQ(report.spill_bytes, 0) << compiled.value().log;
    }
  }
  EXPECT_GT(kernels, 0);
}

TEST(CudaCompile, AnUnknownArchitectureAndWrongTextAreNamed) {
  ONEPASS_NEED_NVRTC;
  for (const auto& [source, architecture, said] :
       {std::tuple{"", "sm_1", "sm_1"},
        {"int wrong = undeclared;", "sm_80", "undeclared"},
        {"#include <cuda_fp16.h_that_is_not_here>", "sm_80", "cuda_fp16.h_that_is_not_here"}}) {
    const Result<Compiled> compiled = compile(nvrtc().value(), source, architecture);
    ASSERT_FALSE(compiled.ok());
    EXPECT_NE(compiled.status().message.find(said), std::string::npos) << compiled.status().message;
  }
}

TEST(CudaCompile, SpillsAreRead) {
  ONEPASS_NEED_NVRTC;
  const Result<Compiled> compiled = compile(nvrtc().value(), spilling_source("spills"), "sm_80");
  ASSERT_TRUE(compiled.ok()) << compiled.status().message;
  const CompileReport report = read_compile_log(compiled.value().log);
  EXPECT_GT(report.spill_bytes, 0) << compiled.value().log;
  EXPECT_EQ(report.registers, 255) << compiled.value().log;
}

// NVRTC's own cache, where a driver is here, would give the code without it.
TEST(CudaCompile, TheLogIsThereEachTime) {
  ONEPASS_NEED_NVRTC;
  const std::string source = kernel_text("cuda/kernels/dropout_mask.cuh");
  for (int i = 0; i < 2; ++i) {
    const Result<Compiled> compiled = compile(nvrtc().value(), source, "sm_90a");
    ASSERT_TRUE(compiled.ok()) << compiled.status().message;
    EXPECT_GT(read_compile_log(compiled.value().log).registers, 0) << "compilation " << i;
  }
}

TEST(CudaCompileLog, IsData) {
  const CompileReport report = read_compile_log(
      "ptxas info    : Compiling entry function 'one' for 'sm_90a'\n"
      "    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
      "ptxas info    : Used 168 registers, used 1 barriers, 400 bytes cmem[0]\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 32 registers, used 0 barriers\n"
      "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored in 'one'.\n"
      "ptxas info    : (C7510) something else\n"
      "ptxas info    : (C7514) Potential Performance Loss: wgmma.mma_async instructions are\n");
  EXPECT_EQ(report.registers, 168);
  EXPECT_EQ(report.stack_bytes, 16);
  EXPECT_EQ(report.spill_bytes, 20);
  ASSERT_EQ(report.ignored.size(), 2U);
  EXPECT_NE(report.ignored[1].find("C7514"), std::string::npos);
  EXPECT_EQ(read_compile_log("").registers, 0);
  EXPECT_EQ(read_compile_log(" registers").registers, 0);
}

TEST(CudaKernelText, AMissingFileIsAnErrorOfTheCompiler) {
  EXPECT_EQ(kernel_text("nowhere.cuh"), "#error \"no kernel text nowhere.cuh\"\n");
}

}  // namespace
}  // namespace onepass::cuda
