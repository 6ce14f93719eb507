// Workspace of calls that bring none: memory of a GPU in the order of a stream.
#pragma once

#include <cstdint>

#include "onepass/status.h"

namespace onepass::cuda {

/// Makes the device's pool, which is forbidden in a capture.
Status prepare_memory(int device);

/// Bytes for what is put on the stream from here on, from a pool of onepass' own that keeps what it
/// has had. Does not wait, and where the pool is made already may be captured.
Result<void*> take(std::int64_t bytes, int device, void* stream);

/// Gives them back after what is on the stream by now.
void give_back(void* memory, int device, void* stream);

}  // namespace onepass::cuda
