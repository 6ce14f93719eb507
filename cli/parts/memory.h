// Whether this machine has the memory that a call needs, asked before anything is allocated.
#pragma once

#include <cstdint>
#include <string>

namespace onepass::cli {

/// Bytes that can be used without swapping, now.
std::int64_t available_memory_bytes();

/// Throws Error, which says both numbers, where `what` needs more bytes than there are. A double,
/// because the sizes of a problem line multiply beyond 64 bits.
void require_memory(const std::string& what, double bytes);

}  // namespace onepass::cli
