// Problems drawn from a seed, forward and backward.
#include "conformance/checker.h"
#include "conformance/every_case.h"
#include "conformance/random_call.h"

namespace onepass::conformance {

Outcome random_sweep(const Settings& settings) {
  Checker checker(settings);
  for (std::int64_t i = 0; i < settings.count; ++i) {
    checker.check(random_call(settings.seed + static_cast<std::uint32_t>(i)));
  }
  Outcome outcome = checker.outcome();
  outcome.detail += ", seed " + std::to_string(settings.seed);
  return outcome;
}

}  // namespace onepass::conformance
