#include "cpu/peak.h"

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cpu/targets.h"

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

double read_bandwidth(std::int64_t bytes) {
  std::vector<std::uint64_t> buffer(static_cast<std::size_t>(bytes) / sizeof(std::uint64_t), 1);
  std::uint64_t total = 0;
  double best = 0.0;
  for (int run = 0; run < runs; ++run) {
    const double time = seconds([&] {
      std::uint64_t sums[8] = {};
      for (std::size_t i = 0; i + 8 <= buffer.size(); i += 8) {
        for (std::size_t j = 0; j < 8; ++j) sums[j] += buffer[i + j];
      }
      for (const std::uint64_t sum : sums) total += sum;
    });
    best = std::max(best, static_cast<double>(bytes) / time);
  }
  // The sum is used, so that the loop cannot be dropped.
  return total == 0 ? 0.0 : best;
}

}  // namespace onepass::cpu
