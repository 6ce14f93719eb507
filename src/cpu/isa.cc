#include "cpu/isa.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "cpu/threads.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace onepass {
namespace {

constexpr Isa all_isas[] = {Isa::baseline, Isa::neon, Isa::avx2, Isa::avx512, Isa::avx512_bf16};

std::string list(const std::vector<Isa>& isas) {
  std::string text;
  for (const Isa isa : isas) text += (text.empty() ? "" : ", ") + std::string(name(isa));
  return text;
}

std::optional<Isa> isa_named(std::string_view text) {
  for (const Isa isa : all_isas) {
    if (text == name(isa)) return isa;
  }
  return std::nullopt;
}

#if defined(__x86_64__)
struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Registers cpuid(unsigned leaf, unsigned subleaf) {
  Registers r;
  if (!__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx)) return {};
  return r;
}

/// Extended control register 0: which register files the operating system saves.
unsigned saved_state() {
  unsigned low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

void detect(std::vector<Isa>& isas) {
  constexpr auto has = [](unsigned value, auto... bit) { return ((value >> bit & 1U) && ...); };
  const Registers basic = cpuid(1, 0), extended = cpuid(7, 0);
  if (!has(basic.ecx, 27)) return;  // OSXSAVE
  const unsigned state = saved_state();
  // ymm state; FMA, F16C, AVX; AVX2
  if (!has(state, 1, 2) || !has(basic.ecx, 12, 29, 28) || !has(extended.ebx, 5)) return;
  isas.push_back(Isa::avx2);
  // opmask and zmm state; AVX-512 F, DQ, BW, VL
  if (!has(state, 5, 6, 7) || !has(extended.ebx, 16, 17, 30, 31)) return;
  isas.push_back(Isa::avx512);
  if (has(cpuid(7, 1).eax, 5)) isas.push_back(Isa::avx512_bf16);
}
#elif defined(__aarch64__)
void detect(std::vector<Isa>& isas) { isas.push_back(Isa::neon); }
#else
void detect(std::vector<Isa>&) {}
#endif

}  // namespace

const char* name(Isa isa) {
  switch (isa) {
    case Isa::baseline:
      return "baseline";
    case Isa::neon:
      return "neon";
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
    case Isa::avx512_bf16:
      return "avx512_bf16";
  }
  return "unknown";
}

namespace cpu {

bool bf16_dot_is_fast() {
#if defined(__x86_64__)
  unsigned highest = 0, b = 0, c = 0, d = 0;
  __get_cpuid(0, &highest, &b, &c, &d);
  return c != signature_INTEL_ecx;
#else
  return false;
#endif
}

std::vector<Isa> detected_isas() {
  std::vector<Isa> isas{Isa::baseline};
  detect(isas);
  return isas;
}

}  // namespace cpu

Result<Capabilities> cpu_capabilities(int threads) {
  Capabilities capabilities;
  // Asked once: a virtual machine takes ten microseconds for each CPUID.
  static const std::vector<Isa> detected = cpu::detected_isas();
  static const bool bf16_dot_is_fast = cpu::bf16_dot_is_fast();
  capabilities.isas = detected;
  capabilities.threads = cpu::usable_threads(threads);
  const char* forced = std::getenv("ONEPASS_ISA");
  if (!forced || !*forced) {
    if (!bf16_dot_is_fast) std::erase(capabilities.isas, Isa::avx512_bf16);
    return capabilities;
  }
  const std::vector<Isa> here = capabilities.isas;
  const std::optional<Isa> isa = isa_named(forced);
  if (!isa || std::find(here.begin(), here.end(), *isa) == here.end()) {
    return Status::invalid("ONEPASS_ISA: " + std::string(forced) +
                           (isa ? " is not on this machine" : " is no instruction set") +
                           "; here: " + list(here) + "; unset it to use the best one");
  }
  capabilities.isas = {*isa};
  // The bf16 dot products come on top of AVX-512, which serves the other dtypes.
  if (*isa == Isa::avx512_bf16) capabilities.isas = {Isa::avx512, Isa::avx512_bf16};
  return capabilities;
}

}  // namespace onepass
