// Repeated runs and what they took.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

#include "conformance/mirror.h"

namespace onepass::cli {

struct Timing {
  double median_s = 0.0, min_s = 0.0, p90_s = 0.0;
  int runs = 0;
};

template <class Body>
double seconds_of(const Body& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// What a list of run times says; empties give zeros.
inline Timing timing_of(std::vector<double> seconds) {
  if (seconds.empty()) return {};
  std::sort(seconds.begin(), seconds.end());
  const std::size_t last = seconds.size() - 1;
  return {seconds[last / 2], seconds.front(), seconds[last * 9 / 10],
          static_cast<int>(seconds.size())};
}

/// Runs after one that warms up: `runs` of them, fewer (at least 3) where they would take more than
/// `budget_s`. `run` gives its seconds.
template <class Run>
Timing measure_by(int runs, double budget_s, const Run& run) {
  run();
  std::vector<double> seconds{run()};
  double spent = seconds.front();
  while (static_cast<int>(seconds.size()) < runs && (seconds.size() < 3 || spent < budget_s)) {
    seconds.push_back(run());
    spent += seconds.back();
  }
  return timing_of(std::move(seconds));
}

/// The same by this machine's clock.
template <class Body>
Timing measure(int runs, double budget_s, const Body& body) {
  return measure_by(runs, budget_s, [&] { return seconds_of(body); });
}

/// The same on a mirror's device: on a GPU what its stream takes.
template <class Body>
Timing measure_on(Device device, conformance::Mirror& mirror, int runs, double budget_s,
                  const Body& body) {
  if (device.kind == Device::Kind::cpu) return measure(runs, budget_s, body);
  return measure_by(runs, budget_s, [&] { return mirror.seconds_of(body); });
}

}  // namespace onepass::cli
