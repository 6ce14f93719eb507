// Repeated runs and what they took.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

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

/// Runs of body after one that warms up: `runs` of them, fewer (at least 3) where they would take
/// more than `budget_s`.
template <class Body>
Timing measure(int runs, double budget_s, const Body& body) {
  body();
  std::vector<double> seconds{seconds_of(body)};
  double spent = seconds.front();
  while (static_cast<int>(seconds.size()) < runs && (seconds.size() < 3 || spent < budget_s)) {
    seconds.push_back(seconds_of(body));
    spent += seconds.back();
  }
  return timing_of(std::move(seconds));
}

}  // namespace onepass::cli
