// The inputs of the written cases: the generator G and the ramp R.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace onepass::conformance {

/// G(seed, amplitude): a 32-bit linear congruential generator's values in [-amplitude, amplitude],
/// exact in bfloat16 and float16 when the amplitude is a power of two.
std::vector<double> generate(std::uint32_t seed, double amplitude, std::int64_t elements);

/// R: value = key index + first, for every sequence, head and channel; logical order (b, s, h, d).
/// With q = 0 the output is the mean index of the visible keys.
std::vector<double> ramp(std::int64_t b, std::int64_t s, std::int64_t h, std::int64_t d,
                         double first = 0.0);

/// Sum of absolute values.
double sum_abs(std::span<const double> values);

}  // namespace onepass::conformance
