// A kernel from its text to a launch: memory cache, disk cache, compiler, driver.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "cuda/compile_log.h"
#include "cuda/compiler.h"
#include "cuda/disk_cache.h"
#include "cuda/driver.h"
#include "onepass/plan.h"

namespace onepass::cuda {

/// Machine code for `architecture`, from the disk cache or compiled and kept there. Its key:
/// source, options, architecture and the identity of the NVRTC.
Result<Compiled> compile_cached(const DiskCache& cache, const Nvrtc& nvrtc,
                                const std::string& source, const std::string& architecture);

/// Loaded for the whole process and every device of its architecture; never unloaded.
struct Kernel {
  KernelHandle handle = nullptr;
  CompileReport report;
};

/// The kernel `name` of a source, ready on the device of `capabilities`, so that a launch there
/// neither compiles nor loads. Compiled or read at the first call for this source and architecture,
/// which threads may make at once.
Result<const Kernel*> prepare_kernel(const std::string& source, const std::string& name,
                                     const Capabilities& capabilities);

struct Grid {
  std::uint32_t blocks = 1;   // along x, up to 2^31 - 1
  std::uint32_t threads = 1;  // of a block
  std::uint32_t shared_bytes = 0;
};

/// Starts it on the stream, a CUstream of that device, with the one struct that onepass' kernels
/// take. Neither allocates nor waits.
Status launch_kernel(const Kernel& kernel, int device, const Grid& grid, void* stream,
                     const void* call);

}  // namespace onepass::cuda
