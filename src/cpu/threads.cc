#include "cpu/threads.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#include "onepass/exec.h"

extern "C" int omp_in_parallel() __attribute__((weak));

namespace onepass::cpu {
namespace {

/// A loop in progress; lives on the caller's stack until the last helper has left it.
struct Loop {
  LoopBody body;
  void* context;
  std::int64_t items;
  std::atomic<std::int64_t> next{0};
  int threads;     // most that may take part, the caller included
  int joined = 1;  // guarded by Pool::mutex
  int active = 0;  // helpers inside; guarded by Pool::mutex
  Loop* after = nullptr;
  std::condition_variable left;

  Loop(LoopBody b, void* c, std::int64_t n, int t) : body(b), context(c), items(n), threads(t) {}
  void work(int thread) {
    for (std::int64_t item; (item = next.fetch_add(1, std::memory_order_relaxed)) < items;) {
      body(context, item, thread);
    }
  }
};

struct Pool {
  std::mutex mutex;
  std::condition_variable offered;
  Loop* first = nullptr;  // loops that still take helpers
  int workers = 0;
};

thread_local bool inside_loop = false;

// Static storage that is never destroyed: workers may outlive main's statics.
alignas(Pool) unsigned char pool_storage[sizeof(Pool)];
Pool& pool() {
  static Pool* made = [] {
    Pool* fresh = new (pool_storage) Pool;
    // A child has one thread: its pool starts empty, its mutex unlocked, whatever the parent did.
    pthread_atfork([] { pool().mutex.lock(); }, [] { pool().mutex.unlock(); },
                   [] { new (pool_storage) Pool; });
    return fresh;
  }();
  return *made;
}

void unlink(Pool& p, const Loop* loop) {
  for (Loop** link = &p.first; *link; link = &(*link)->after) {
    if (*link == loop) {
      *link = loop->after;
      return;
    }
  }
}

void serve(Pool& p) {
  inside_loop = true;
  std::unique_lock lock(p.mutex);
  for (;;) {
    p.offered.wait(lock, [&] { return p.first != nullptr; });
    Loop* loop = p.first;
    const int thread = loop->joined++;
    if (loop->joined == loop->threads) unlink(p, loop);
    ++loop->active;
    lock.unlock();
    loop->work(thread);
    lock.lock();
    // Notified under the lock: the caller cannot leave and free the loop before this returns.
    if (--loop->active == 0) loop->left.notify_one();
  }
}

void grow(Pool& p, int workers) {
  try {
    for (; p.workers < workers; ++p.workers) std::thread([&p] { serve(p); }).detach();
  } catch (const std::system_error&) {
    // The loop runs with the threads there are.
  }
}

void run_serial(std::int64_t items, LoopBody body, void* context) {
  for (std::int64_t item = 0; item < items; ++item) body(context, item, 0);
}

}  // namespace

int usable_threads(int requested) {
  if (inside_loop || (omp_in_parallel && omp_in_parallel())) return 1;
  if (requested > 0) return requested;
  if (const char* text = std::getenv("OMP_NUM_THREADS")) {
    const long number = std::strtol(text, nullptr, 10);  // of a list, the outermost level
    if (number > 0) return static_cast<int>(std::min<long>(number, max_threads));
  }
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return std::max(CPU_COUNT(&allowed), 1);
  return static_cast<int>(std::max(std::thread::hardware_concurrency(), 1U));
}

void parallel_for(int threads, std::int64_t items, LoopBody body, void* context) {
  threads = static_cast<int>(std::min<std::int64_t>(usable_threads(std::max(threads, 1)), items));
  if (threads <= 1) return run_serial(items, body, context);
  Loop loop(body, context, items, threads);
  Pool& p = pool();
  {
    std::lock_guard lock(p.mutex);
    grow(p, threads - 1);
    Loop** link = &p.first;
    while (*link) link = &(*link)->after;
    *link = &loop;
  }
  for (int helper = 1; helper < threads; ++helper) p.offered.notify_one();
  inside_loop = true;
  loop.work(0);
  inside_loop = false;
  std::unique_lock lock(p.mutex);
  unlink(p, &loop);
  loop.left.wait(lock, [&] { return loop.active == 0; });
}

}  // namespace onepass::cpu
