#include "reference/rounding.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace onepass::reference {

double round_to(Format format, double x) {
  int digits = 53, smallest_exponent = -1022;  // of the format's normal numbers
  double largest = 0.0;
  switch (format) {
    case Format::float64:
      return x;
    case Format::float32:
      return static_cast<float>(x);
    case Format::bfloat16:
      digits = 8, smallest_exponent = -126, largest = std::ldexp(255.0, 120);
      break;
    case Format::float16:
      digits = 11, smallest_exponent = -14, largest = 65504.0;
      break;
  }
  if (x == 0.0 || !std::isfinite(x)) return x;
  int exponent = 0;
  std::frexp(x, &exponent);  // 2^(exponent - 1) <= |x| < 2^exponent
  const int unit = std::max(exponent - digits, smallest_exponent - digits + 1);
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(x, -unit)), unit);
  if (std::fabs(rounded) <= largest) return rounded;
  return std::copysign(std::numeric_limits<double>::infinity(), x);
}

}  // namespace onepass::reference
