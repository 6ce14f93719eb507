#include "cuda/nvrtc.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "cuda/driver.h"
#include "cuda/shared_library.h"

namespace onepass::cuda {
namespace {

constexpr int oldest_nvrtc_major = 12;
constexpr const char* advice =
    "; NVRTC of CUDA 12.0 or newer, no newer than the driver's CUDA, is needed to compile kernels; "
    "pip install nvidia-cuda-nvrtc, or set ONEPASS_NVRTC to libnvrtc.so";

std::string file_identity(const std::string& file) {
  struct stat status {};
  if (file.empty() || stat(file.c_str(), &status) != 0) return file;
  return file + " " + std::to_string(status.st_size) + " bytes " + std::to_string(status.st_mtime) +
         " s";
}

struct Loaded {
  Nvrtc nvrtc{};
  std::string problem;  // empty = usable
};

Loaded load_one(const std::string& place, int driver_major) {
  SharedLibrary library(place);
  if (!library.opened()) return {{}, library.error()};
  Nvrtc n{};
  int (*version)(int*, int*) = nullptr;
  library.find("nvrtcVersion", version);
  library.find("nvrtcCreateProgram", n.create_program);
  library.find("nvrtcDestroyProgram", n.destroy_program);
  library.find("nvrtcCompileProgram", n.compile_program);
  library.find("nvrtcGetCUBINSize", n.get_cubin_size);
  library.find("nvrtcGetCUBIN", n.get_cubin);
  library.find("nvrtcGetProgramLogSize", n.get_log_size);
  library.find("nvrtcGetProgramLog", n.get_log);
  if (!library.missing().empty()) return {{}, place + " lacks " + library.missing()};
  if (version(&n.major, &n.minor) != 0) return {{}, place + " does not tell its version"};
  const std::string name = std::to_string(n.major) + "." + std::to_string(n.minor);
  if (n.major < oldest_nvrtc_major) return {{}, place + " is of CUDA " + name};
  if (driver_major > 0 && n.major > driver_major) {
    return {{},
            place + " is of CUDA " + name + ", the driver of CUDA " + std::to_string(driver_major)};
  }
  n.identity = "NVRTC " + name + " " + file_identity(file_of(reinterpret_cast<void*>(version)));
  return {n, {}};
}

// In one folder, newest first; the bare name is a development link.
void add_folder(const std::filesystem::path& folder, std::vector<std::string>& places) {
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}) {
    std::error_code error;
    const std::filesystem::path file = folder / name;
    if (std::filesystem::exists(file, error)) places.push_back(file.string());
  }
}

void add_toolkit(const std::filesystem::path& home, std::vector<std::string>& places) {
  add_folder(home / "lib64", places);
  add_folder(home / "lib", places);
}

// Where pip puts the wheels of CUDA 13 and 12 in a site-packages folder.
void add_wheels(const std::filesystem::path& packages, std::vector<std::string>& places) {
  add_folder(packages / "nvidia" / "cu13" / "lib", places);
  add_folder(packages / "nvidia" / "cuda_nvrtc" / "lib", places);
}

void add_virtual_env(const std::filesystem::path& home, std::vector<std::string>& places) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(home / "lib", error)) {
    if (entry.path().filename().string().rfind("python3", 0) == 0) {
      add_wheels(entry.path() / "site-packages", places);
    }
  }
}

}  // namespace

std::vector<std::string> nvrtc_places() {
  std::vector<std::string> places;
  if (const char* given = std::getenv("ONEPASS_NVRTC"); given != nullptr && *given != '\0') {
    std::error_code error;
    if (!std::filesystem::is_directory(given, error)) return {given};
    add_folder(given, places);
    if (places.empty()) places.push_back(std::string(given) + "/libnvrtc.so");
    return places;
  }
  places = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* home = std::getenv(variable);
    if (home != nullptr && *home != '\0') add_toolkit(home, places);
  }
  add_toolkit("/usr/local/cuda", places);
  // The Python module lies in site-packages/onepass.
  const std::filesystem::path self = file_of(reinterpret_cast<const void*>(&nvrtc_places));
  if (!self.empty()) add_wheels(self.parent_path().parent_path(), places);
  if (const char* home = std::getenv("VIRTUAL_ENV")) add_virtual_env(home, places);
  return places;
}

Result<Nvrtc> load_nvrtc(const std::vector<std::string>& places, int driver_major) {
  std::string unusable, first;
  for (const std::string& place : places) {
    Loaded loaded = load_one(place, driver_major);
    if (loaded.problem.empty()) return loaded.nvrtc;
    if (first.empty()) first = loaded.problem;
    // A library that is here but cannot be used says more than names that lead nowhere.
    if (unusable.empty() && loaded.problem.rfind(place + " is of", 0) == 0) {
      unusable = loaded.problem;
    }
  }
  const std::string& found = unusable.empty() ? first : unusable;
  return Status{Code::runtime_error, "nvrtc: not found (" + found + ")" + advice};
}

const Result<Nvrtc>& nvrtc() {
  static const Result<Nvrtc> loaded =
      load_nvrtc(nvrtc_places(), driver().ok() ? driver().value().version / 1000 : 0);
  return loaded;
}

}  // namespace onepass::cuda
