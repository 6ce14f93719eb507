#include "cuda/wgmma_text.h"

namespace onepass::cuda {
namespace {

// "%4, %5, %6"
std::string places(std::int64_t first, std::int64_t count) {
  std::string text;
  for (std::int64_t i = first; i < first + count; ++i) {
    text += (i == first ? "%" : ", %") + std::to_string(i);
  }
  return text;
}

}  // namespace

std::string wgmma_text(const Wgmma& product) {
  const std::int64_t registers = product.columns / 2;
  const std::string n = std::to_string(product.columns);
  const std::string type = product.dtype == DType::bfloat16 ? "bf16" : "f16";
  const bool in_registers = product.a_in_registers;
  std::string text = in_registers ? "__device__ void " : "template <int adds>\n__device__ void ";
  text += std::string(product.name) + "(float (&d)[" + std::to_string(product.columns / 8) +
          "][4], " + (in_registers ? "const unsigned (&a)[4]" : "unsigned long long a") +
          ", unsigned long long b) {\n  asm volatile(\n";
  const std::int64_t a = registers, b = a + (in_registers ? 4 : 1);
  text += "      \"{\\n.reg .pred adds;\\nsetp.ne.b32 adds, %" + std::to_string(b + 1) +
          ", 0;\\n\"\n      \"wgmma.mma_async.sync.aligned.m64n" + n + "k16.f32." + type + "." +
          type + " \"\n      \"{" + places(0, registers) + "}, \"\n      \"" +
          (in_registers ? "{" + places(a, 4) + "}" : "%" + std::to_string(a)) + ", %" +
          std::to_string(b) + ", adds, 1, 1, " + (in_registers ? "" : "0, ") +
          (product.b_by_rows ? "1" : "0") + ";\\n}\"\n      : ";
  for (std::int64_t i = 0; i < registers; ++i) {
    text += std::string(i == 0 ? "" : ", ") + "\"+f\"(d[" + std::to_string(i / 4) + "][" +
            std::to_string(i % 4) + "])";
  }
  text += "\n      : ";
  text += in_registers ? R"("r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]))" : R"("l"(a))";
  text += std::string(", \"l\"(b), \"n\"(") + (in_registers ? "1" : "adds") + "));\n}\n";
  return text;
}

}  // namespace onepass::cuda
