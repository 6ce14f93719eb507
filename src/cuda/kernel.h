// A kernel from its source to a launch; what was compiled and loaded stays for the process.
#pragma once

#include <cstdint>
#include <string>

#include "core/problem.h"
#include "cuda/compile_log.h"
#include "cuda/driver.h"
#include "onepass/plan.h"

namespace onepass::cuda {

/// One kernel that a call needs.
struct KernelSource {
  const char* name;           // of the kernel in its source; no other source has one of this name
  std::string configuration;  // what the source is made from: equal ones, equal sources
  std::string (*source)(const Problem&);
};

/// Code of one kernel; once loaded it is so for the whole process and every device of its
/// architecture; never unloaded.
struct Kernel {
  KernelHandle handle = nullptr;
  CompileReport report;
};

/// Why a candidate with this kernel makes way for the next one; empty = it need not.
std::string verdict_on(const KernelSource& source, const CompileReport& report);

struct FoundKernel {
  const Kernel* ready = nullptr;          // on the device of the capabilities
  const CompileReport* report = nullptr;  // compiled at least
};
/// What this process has of a kernel already.
FoundKernel find_kernel(const KernelSource& source, const Capabilities& capabilities);

/// What the compiler says of it. It is compiled or read but not loaded, so that no GPU is needed.
Result<const CompileReport*> compile_kernel(const KernelSource& source, const Problem& problem,
                                            const Capabilities& capabilities);

/// The kernel, ready on the device of `capabilities`, so that a launch there neither compiles nor
/// loads. Compiled or read at the first call for this source and architecture, which threads may
/// make at once.
Result<const Kernel*> prepare_kernel(const KernelSource& source, const Problem& problem,
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
