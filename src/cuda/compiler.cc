#include "cuda/compiler.h"

#include <algorithm>
#include <memory>

namespace onepass::cuda {
namespace {

// Up to its terminating zero.
std::string read_log(const Nvrtc& nvrtc, Nvrtc::Program program) {
  std::size_t size = 0;
  if (nvrtc.get_log_size(program, &size) != 0 || size < 2) return {};
  std::string log(size, '\0');
  if (nvrtc.get_log(program, log.data()) != 0) return {};
  log.resize(std::min(log.find('\0'), size));
  return log;
}

Status refused(const Nvrtc& nvrtc, const std::string& architecture, const std::string& log) {
  return {Code::runtime_error,
          "kernel: NVRTC " + std::to_string(nvrtc.major) + "." + std::to_string(nvrtc.minor) +
              " does not compile it for " + architecture +
              "; the kernels need CUDA 12.0 or newer and an architecture that it knows; try the "
              "NVRTC of the driver's CUDA. It said: " +
              log};
}

}  // namespace

std::vector<std::string> code_options(const std::string& architecture) {
  return {"--gpu-architecture=" + architecture, "--std=c++20", "-default-device",
          "--ptxas-options=--verbose"};
}

std::vector<std::string> compile_options(const Nvrtc& nvrtc, const std::string& architecture) {
  std::vector<std::string> options = code_options(architecture);
  // From CUDA 12.9 on NVRTC has a cache of its own, which gives code without ptxas' log.
  if (nvrtc.major > 12 || nvrtc.minor >= 9) options.emplace_back("--no-cache");
  return options;
}

Result<Compiled> compile(const Nvrtc& nvrtc, const std::string& source,
                         const std::string& architecture) {
  Nvrtc::Program program = nullptr;
  if (nvrtc.create_program(&program, source.c_str(), "onepass.cu", 0, nullptr, nullptr) != 0) {
    return refused(nvrtc, architecture, "no program could be made");
  }
  const auto destroy = [&](void*) { nvrtc.destroy_program(&program); };
  const std::unique_ptr<void, decltype(destroy)> owner(program, destroy);

  const std::vector<std::string> options = compile_options(nvrtc, architecture);
  std::vector<const char*> words;
  for (const std::string& option : options) words.push_back(option.c_str());
  const int result = nvrtc.compile_program(program, static_cast<int>(words.size()), words.data());
  Compiled compiled{.cubin = {}, .log = read_log(nvrtc, program)};
  std::size_t size = 0;
  if (result != 0 || nvrtc.get_cubin_size(program, &size) != 0 || size == 0) {
    return refused(nvrtc, architecture, compiled.log);
  }
  compiled.cubin.resize(size);
  if (nvrtc.get_cubin(program, compiled.cubin.data()) != 0) {
    return refused(nvrtc, architecture, compiled.log);
  }
  return compiled;
}

}  // namespace onepass::cuda
