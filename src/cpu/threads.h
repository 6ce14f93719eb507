// A small persistent thread pool: OpenMP's rules for users, no OpenMP inside.
#pragma once

#include <cstdint>

namespace onepass::cpu {

/// Threads a call may use: `requested` if positive, else OMP_NUM_THREADS, else the cores that this
/// process may run on. Always 1 inside an OpenMP parallel region or inside parallel_for.
int usable_threads(int requested);

/// One parallel loop: body(context, item, thread) for every item, thread in [0, threads).
using LoopBody = void (*)(void* context, std::int64_t item, int thread);

/// Runs the loop on up to `threads` threads, the caller among them, and returns when every item is
/// done. Items are handed out in order from one counter. Serial inside another loop. Several user
/// threads may call at once; a forked child starts with a fresh pool. Never throws: when the system
/// gives no threads, the caller does the work alone.
void parallel_for(int threads, std::int64_t items, LoopBody body, void* context);

template <class Body>
void parallel_for(int threads, std::int64_t items, const Body& body) {
  parallel_for(
      threads, items,
      [](void* context, std::int64_t item, int thread) {
        (*static_cast<const Body*>(context))(item, thread);
      },
      const_cast<void*>(static_cast<const void*>(&body)));
}

}  // namespace onepass::cpu
