// Workspace of calls that bring none: memory of a GPU in the order of a stream.
#pragma once

#include <cstdint>

#include "onepass/status.h"

namespace onepass::cuda {

/// Bytes for what is put on the stream from here on, from a pool of onepass' own that keeps what it
/// has had. Neither waits nor is forbidden in a capture.
Result<void*> take(std::int64_t bytes, int device, void* stream);

/// Gives them back after what is on the stream by now.
void give_back(void* memory, int device, void* stream);

}  // namespace onepass::cuda
