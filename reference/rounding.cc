#include "reference/rounding.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace onepass::reference {

double round_to_16_bits(Format format, double x) {
  const bool bfloat16 = format == Format::bfloat16;
  const int digits = bfloat16 ? 8 : 11;
  const int smallest_exponent = bfloat16 ? -126 : -14;  // of the format's normal numbers
  const double largest = bfloat16 ? std::ldexp(255.0, 120) : 65504.0;
  if (x == 0.0 || !std::isfinite(x)) return x;
  int exponent = 0;
  std::frexp(x, &exponent);  // 2^(exponent - 1) <= |x| < 2^exponent
  const int unit = std::max(exponent - digits, smallest_exponent - digits + 1);
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(x, -unit)), unit);
  if (std::fabs(rounded) <= largest) return rounded;
  return std::copysign(std::numeric_limits<double>::infinity(), x);
}

}  // namespace onepass::reference
