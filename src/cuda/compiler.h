// Kernel text to machine code. Needs NVRTC, but no GPU.
#pragma once

#include <string>
#include <vector>

#include "cuda/nvrtc.h"

namespace onepass::cuda {

struct Compiled {
  std::string cubin;
  std::string log;  // ptxas' words on registers and spills; read_compile_log has them as data
};

/// Those of the options that the code depends on: the same for each NVRTC.
std::vector<std::string> code_options(const std::string& architecture);

/// The options of every compilation, for `architecture` as in "sm_80" or "sm_90a".
std::vector<std::string> compile_options(const Nvrtc& nvrtc, const std::string& architecture);

/// Compiles a source that includes nothing.
Result<Compiled> compile(const Nvrtc& nvrtc, const std::string& source,
                         const std::string& architecture);

}  // namespace onepass::cuda
