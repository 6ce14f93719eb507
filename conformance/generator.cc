#include "conformance/generator.h"

#include <cmath>

namespace onepass::conformance {

std::vector<double> generate(std::uint32_t seed, double amplitude, std::int64_t elements) {
  std::vector<double> values(static_cast<std::size_t>(elements));
  std::uint32_t x = seed;
  for (double& value : values) {
    x = 1664525u * x + 1013904223u;
    value = amplitude * (static_cast<double>((x >> 16) % 257) - 128.0) / 128.0;
  }
  return values;
}

std::vector<double> ramp(std::int64_t b, std::int64_t s, std::int64_t h, std::int64_t d,
                         double first) {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(b * s * h * d));
  for (std::int64_t batch = 0; batch < b; ++batch) {
    for (std::int64_t key = 0; key < s; ++key) {
      values.insert(values.end(), static_cast<std::size_t>(h * d),
                    static_cast<double>(key) + first);
    }
  }
  return values;
}

double sum_abs(std::span<const double> values) {
  double sum = 0.0;
  for (const double value : values) sum += std::fabs(value);
  return sum;
}

}  // namespace onepass::conformance
