// Generated CUDA text compiled as C++ by the compiler of this build and loaded, for tests.
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "lang/cuda_text.h"

namespace onepass::lang {

/// The device functions that generated text calls, in plain C++.
inline constexpr const char* host_intrinsics = R"(
#include <math.h>
#include <string.h>
#define __forceinline__ inline
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return sqrtf(a); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __expf(float a) { return expf(a); }
inline float __logf(float a) { return logf(a); }
inline float __int2float_rn(int a) { return float(a); }
inline float __ll2float_rn(long long a) { return float(a); }
inline float __double2float_rn(double a) { return float(a); }
inline float __uint_as_float(unsigned a) {
  float out;
  memcpy(&out, &a, sizeof out);
  return out;
}
)";

/// A library of several texts. Each becomes a function that fills a whole (rows, cols) matrix.
class CompiledTexts {
 public:
  static bool compiler_is_here() { return access(ONEPASS_TEST_CXX, X_OK) == 0; }

  CompiledTexts() : source_(host_intrinsics + cuda_text_prelude()) {}
  ~CompiledTexts() {
    if (library_ != nullptr) dlclose(library_);
  }
  CompiledTexts(const CompiledTexts&) = delete;
  CompiledTexts& operator=(const CompiledTexts&) = delete;

  /// Number of the function.
  int add(const Program& program, CudaText options) {
    const std::string id = std::to_string(count_);
    options.name = "text_" + id;
    const std::string text = cuda_text(program, options);
    // Columns outside the limits are hidden; if there is nothing else, those inside are visible.
    std::string check;
    if (text.find("has_limits = true") != std::string::npos) {
      check =
          "const bool within = col >= r.first && col <= r.last;\n"
          "if (out[i] != 0 ? !within : only_limits && within) out[i] = -1;\n";
    }
    source_ += text + "namespace text_" + id + " {\nextern \"C\" void run_" + id +
               "(const void* parameters, const Scope* scope, const float* logits, float* out) {\n"
               "Parameters p;\nmemcpy(&p, parameters, sizeof p);\n"
               "const PerScope c = per_scope(p, *scope);\nint64 i = 0;\n"
               "for (int64 row = 0; row < scope->s_q; ++row) {\n"
               "const PerRow r = per_row(p, c, Int(row));\n"
               "for (int64 col = 0; col < scope->s_kv; ++col, ++i) {\n"
               "const PerKey k = per_key(p, c, Int(col));\nout[i] = value(p, c, r, k" +
               (program.kind == Kind::score ? ", logits[i]" : "") + ");\n" + check + "}\n}\n}\n}\n";
    return count_++;
  }

  /// Empty, or why it failed.
  std::string build(const std::string& folder) {
    const std::string base = folder + "/onepass_text_" + std::to_string(getpid());
    std::ofstream(base + ".cc") << source_;
    const std::string command = std::string(ONEPASS_TEST_CXX) +
                                " -std=c++20 -O0 -w -ffp-contract=off -fPIC -shared " + base +
                                ".cc -o " + base + ".so 2> " + base + ".log";
    const int status = std::system(command.c_str());
    std::ifstream log(base + ".log");
    std::string message{std::istreambuf_iterator<char>(log), {}};
    if (status == 0) library_ = dlopen((base + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (status == 0 && library_ == nullptr) message = dlerror();
    for (const char* end : {".cc", ".so", ".log"}) unlink((base + end).c_str());
    return library_ != nullptr ? "" : "compiler: " + message;
  }

  /// (s_q, s_kv) values; a mask's are 0 or 1, or -1 where its column limits are wrong.
  std::vector<float> run(int number, const Program& program, const Scope& scope,
                         const std::vector<float>& logits) const {
    const std::int64_t names[] = {
        scope.b,       scope.h,       scope.h_kv,          scope.s_q,          scope.s_kv,
        scope.q_start, scope.k_start, scope.token_q_start, scope.token_k_start};
    using Run = void(const void*, const std::int64_t*, const float*, float*);
    auto* const function =
        reinterpret_cast<Run*>(dlsym(library_, ("run_" + std::to_string(number)).c_str()));
    std::vector<float> out(static_cast<std::size_t>(scope.s_q * scope.s_kv));
    function(cuda_text_parameters(program).data(), names, logits.data(), out.data());
    return out;
  }

 private:
  std::string source_;
  int count_ = 0;
  void* library_ = nullptr;
};

}  // namespace onepass::lang
