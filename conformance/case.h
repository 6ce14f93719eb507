// The cases that hold the library to its written meaning, each a function that passes or fails.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include "onepass/tensor.h"

namespace onepass::conformance {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

struct Settings {
  Device device;
  int threads = 0;           // as Exec::threads
  std::int64_t shrink = 16;  // workloads divide their lengths by this; 1 = full size
  std::uint32_t seed = 1;    // of the random sweep's first problem
  std::int64_t count = 100;  // problems in the random sweep
};

struct Outcome {
  bool passed = false;
  bool skipped = false;  // the device has no kernel for any of its calls
  /// What was done, or the first failure: problem line, coordinate, both values.
  std::string detail;
};

struct Case {
  const char* name;   // "D01.empty_rows"
  const char* about;  // the fault it looks for
  Outcome (*run)(const Settings&);
};

/// Every case, in the order of their names.
std::span<const Case> cases();

}  // namespace onepass::conformance
