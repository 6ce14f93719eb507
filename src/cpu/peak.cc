#include "cpu/peak.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "cpu/targets.h"
#include "cpu/threads.h"

namespace onepass::cpu {
namespace {

constexpr int runs = 12;

// Time of this thread alone, so that a busy machine does not lower the ceiling.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <class Work>
double seconds(const Work& work) {
  const double start = cpu_seconds();
  work();
  return cpu_seconds() - start;
}

}  // namespace

double peak_flops(Isa isa, DType dtype) {
  const ForwardKernels* kernels = forward_kernels(isa, dtype);
  if (!kernels) return 0.0;
  double best = 0.0;
  std::int64_t rounds = 1000;
  for (int run = 0; run < runs;) {
    alignas(64) unsigned char zeros[64] = {};
    double flops = 0.0;
    const double time = seconds([&] { flops = kernels->multiply_only(rounds, zeros); });
    if (time < 3e-3) {  // too short for the clock, and for the core to reach its frequency
      rounds *= 2;
      continue;
    }
    best = std::max(best, flops / time);
    ++run;
  }
  return best;
}

double read_bandwidth(std::int64_t bytes, int threads) {
  const std::int64_t words = bytes / std::int64_t{sizeof(std::uint64_t)};
  const std::vector<std::uint64_t> buffer(static_cast<std::size_t>(words), 1);
  std::atomic<std::uint64_t> total = 0;
  const auto read = [&](std::int64_t part, int) {
    const std::uint64_t* from = buffer.data() + words * part / threads;
    const std::uint64_t* end = buffer.data() + words * (part + 1) / threads;
    std::uint64_t sums[8] = {};
    for (; end - from >= 8; from += 8) {
      for (int j = 0; j < 8; ++j) sums[j] += from[j];
    }
    for (const std::uint64_t sum : sums) total += sum;
  };
  double best = 0.0;
  for (int run = 0; run < runs; ++run) {
    const auto start = std::chrono::steady_clock::now();
    parallel_for(threads, threads, read);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    best = std::max(best, static_cast<double>(bytes) / time.count());
  }
  // The sum is used, so that the loop cannot be dropped.
  return total == 0 ? 0.0 : best;
}

}  // namespace onepass::cpu
