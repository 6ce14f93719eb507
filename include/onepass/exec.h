// Where and with what a call runs.
#pragma once

#include <cstdint>

namespace onepass {

/// Most CPU threads that a call may ask for.
inline constexpr int max_threads = 4096;

struct Exec {
  /// CPU threads, up to max_threads; 0 = OMP_NUM_THREADS, else every core this process may use.
  int threads = 0;
  /// Scratch of at least Plan::workspace_bytes, aligned to 64 bytes; null = allocated by the call.
  void* workspace = nullptr;
  std::int64_t workspace_bytes = 0;
  /// CUDA stream; not used on the CPU.
  void* stream = nullptr;
};

}  // namespace onepass
