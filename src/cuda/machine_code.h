// Machine code of a source: from the pack, the disk cache or the compiler, in this order.
#pragma once

#include <string>

#include "cuda/compiler.h"
#include "cuda/disk_cache.h"

namespace onepass::cuda {

/// For an architecture as in "sm_90a". What is compiled is kept on disk. Needs no GPU, and where
/// the pack has it no NVRTC.
Result<Compiled> machine_code(const std::string& source, const std::string& architecture);

/// From the disk cache, or compiled and kept there. Its key: source, options, architecture and the
/// identity of the NVRTC.
Result<Compiled> compile_cached(const DiskCache& cache, const Nvrtc& nvrtc,
                                const std::string& source, const std::string& architecture);

}  // namespace onepass::cuda
