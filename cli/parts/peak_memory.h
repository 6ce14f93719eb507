// The most memory this process has held, as the kernel counts it.
#pragma once

#include <cstdint>

namespace onepass::cli {

/// Makes the peak start again from what is held now. False where the system cannot.
bool reset_peak_memory();
/// Bytes held at most since then; -1 where the system does not say.
std::int64_t peak_memory_bytes();
/// Bytes held now; -1 where the system does not say.
std::int64_t memory_bytes();

}  // namespace onepass::cli
