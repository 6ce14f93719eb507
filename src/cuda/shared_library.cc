#include "cuda/shared_library.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

namespace onepass::cuda {

SharedLibrary::SharedLibrary(const std::string& name)
    : handle_(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ != nullptr) return;
  const char* said = dlerror();
  error_ = said != nullptr ? said : name + ": cannot be opened";
}

void* SharedLibrary::symbol(const char* name) {
  void* address = dlsym(handle_, name);
  if (address == nullptr && missing_.empty()) missing_ = name;
  return address;
}

std::string file_of(const void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code error;
  const std::filesystem::path file = std::filesystem::canonical(info.dli_fname, error);
  return error ? std::string() : file.string();
}

}  // namespace onepass::cuda
