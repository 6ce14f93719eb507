// The few functions of NVRTC that tests call, found at run time; no CUDA header, no GPU.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace onepass::lang {

class Nvrtc {
 public:
  Nvrtc() {
    std::vector<std::string> folders = {""};
    for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
      if (const char* home = std::getenv(variable))
        folders.push_back(std::string(home) + "/lib64/");
    }
    folders.push_back("/usr/local/cuda/lib64/");
    for (const std::string& folder : folders) {
      for (const char* name : {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"}) {
        if (library_ == nullptr) library_ = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL);
      }
    }
  }

  bool found() const { return library_ != nullptr; }

  /// Compiles to machine code; empty, or the compiler's log.
  std::string compile(const std::string& source, const std::string& architecture) const {
    using Program = void*;
    Program program = nullptr;
    function<int(Program*, const char*, const char*, int, const char**, const char**)>(
        "nvrtcCreateProgram")(&program, source.c_str(), "text.cu", 0, nullptr, nullptr);
    const std::string target = "--gpu-architecture=" + architecture;
    const char* options[] = {target.c_str(), "--std=c++20", "--device-as-default-execution-space"};
    const int status = function<int(Program, int, const char**)>("nvrtcCompileProgram")(
        program, static_cast<int>(std::size(options)), options);
    std::size_t size = 0;
    function<int(Program, std::size_t*)>("nvrtcGetProgramLogSize")(program, &size);
    std::string log(size, '\0');
    function<int(Program, char*)>("nvrtcGetProgramLog")(program, log.data());
    std::size_t code = 0;
    function<int(Program, std::size_t*)>("nvrtcGetCUBINSize")(program, &code);
    function<int(Program*)>("nvrtcDestroyProgram")(&program);
    if (status == 0 && code > 0) return "";
    return "NVRTC status " + std::to_string(status) + ": " + log.c_str();
  }

 private:
  template <class Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }

  void* library_ = nullptr;
};

}  // namespace onepass::lang
