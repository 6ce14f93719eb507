// The largest of many differences, where a NaN is never lost.
#pragma once

#include <cmath>

namespace onepass::cli {

/// 0 where both are the same, infinities and NaN included; NaN where only one of them is NaN.
inline double error_of(double got, double wanted) {
  if (got == wanted || (std::isnan(got) && std::isnan(wanted))) return 0.0;
  return std::abs(got - wanted);
}

/// NaN counts as larger than everything.
inline double larger_error(double a, double b) { return std::isnan(a) || a >= b ? a : b; }

}  // namespace onepass::cli
