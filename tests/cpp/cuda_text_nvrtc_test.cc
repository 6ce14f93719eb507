// The generated text through the compiler that the GPU backend uses. Needs NVRTC, but no GPU.
#include <gtest/gtest.h>

#include "cuda/compiler.h"
#include "cuda_here.h"
#include "lang/compile.h"
#include "lang/cuda_text.h"
#include "random_expression.h"

namespace onepass::lang {
namespace {

std::string kernel(const std::string& name, Kind kind) {
  return "extern \"C\" __global__ void kernel_" + name + "(const " + name +
         "::Parameters p, onepass_text::Scope scope, float* values) {\n  using namespace " + name +
         ";\n  const PerScope c = per_scope(p, scope);\n"
         "  const PerRow r = per_row(p, c, blockIdx.x);\n"
         "  const PerKey k = per_key(p, c, threadIdx.x);\n"
         "  float& out = values[blockIdx.x * blockDim.x + threadIdx.x];\n  out = value(p, c, r, k" +
         (kind == Kind::score ? ", out" : "") + ");\n}\n";
}

// All texts in one source: that of one kernel holds both a mask and a score.
std::string source() {
  const ArrayArguments arrays;
  std::string out = cuda_text_prelude();
  int number = 0;
  const auto add = [&](const std::string& text, Kind kind) {
    Result<Program> program = compile(text, kind, arrays.arguments());
    if (!program.ok()) {
      ADD_FAILURE() << text << "\n" << program.status().message;
      return;
    }
    for (const bool int32 : {false, true}) {
      for (const bool fast : {false, true}) {
        if (fast && kind == Kind::mask) continue;
        const std::string name = "text_" + std::to_string(number++);
        out += cuda_text(program.value(), {.name = name, .int32 = int32, .fast = fast});
        out += kernel(name, kind);
      }
    }
  };
  for (const char* text :
       {"full", "causal", "window(20, 3)", "chunked_causal(16)", "document(ids)", "document(tok)",
        "prefix(tok)", "lengths(tok)", "sink_window(4, 9)", "keep[row, col] | !flag",
        "-half[col] // 0.3 % ratio < max(wide[b, h, row, col], min(one, brain[row, col]))",
        "abs(k - q) % h != k // -3 ? floor(ratio) == inf : bytes[ids[b, k]] < s_q"}) {
    add(text, Kind::mask);
  }
  for (const char* text :
       {"s", "softcap(s, 30)", "alibi(s, slopes)", "bias(s, dense4)", "s / half[col] // 2 % 3",
        "where(k < q, exp(-s), log(s)) + sqrt(abs(s)) * floor(s)",
        "min(s, table[row, col]) / max(s, one)"}) {
    add(text, Kind::score);
  }
  RandomExpression random(9);
  for (int i = 0; i < 10; ++i) add("causal & " + random.boolean(2), Kind::mask);
  return out;
}

TEST(CudaTextNvrtc, Compiles) {
  ONEPASS_NEED_NVRTC;
  const cuda::Nvrtc& nvrtc = cuda::nvrtc().value();
  const std::string text = source();
  for (const char* architecture : {"sm_80", "sm_90a"}) {
    const Result<cuda::Compiled> compiled = cuda::compile(nvrtc, text, architecture);
    EXPECT_TRUE(compiled.ok()) << compiled.status().message;
  }
  EXPECT_FALSE(cuda::compile(nvrtc, text + "\nint wrong = undeclared;\n", "sm_80").ok());
}

}  // namespace
}  // namespace onepass::lang
