// NVRTC, NVIDIA's run-time compiler: where it is looked for, and its functions that onepass calls.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "onepass/status.h"

namespace onepass::cuda {

struct Nvrtc {
  int major = 0, minor = 0;
  std::string identity;  // version, file, size and time of change: part of every cache key

  using Program = void*;
  int (*create_program)(Program*, const char*, const char*, int, const char**, const char**);
  int (*destroy_program)(Program*);
  int (*compile_program)(Program, int, const char**);
  int (*get_cubin_size)(Program, std::size_t*);
  int (*get_cubin)(Program, char*);
  int (*get_log_size)(Program, std::size_t*);
  int (*get_log)(Program, char*);
};

/// Libraries to try, in order: ONEPASS_NVRTC alone where it is set (a file, or a folder with one);
/// else the dynamic loader's path, CUDA_HOME, CUDA_PATH, /usr/local/cuda, and the nvidia-cuda-nvrtc
/// wheels beside this library and in VIRTUAL_ENV.
std::vector<std::string> nvrtc_places();

/// The first of these that loads and that code can be compiled with for a driver of CUDA
/// `driver_major`; 0 = no driver here, any will do.
Result<Nvrtc> load_nvrtc(const std::vector<std::string>& places, int driver_major);

/// This process's NVRTC: loaded at the first call, which threads may make at once.
const Result<Nvrtc>& nvrtc();

}  // namespace onepass::cuda
