// The float formats of the tested kernels, as roundings of a double.
#pragma once

namespace onepass::reference {

enum class Format { float64, float32, bfloat16, float16 };

/// The value of a 16-bit `format` nearest to x.
double round_to_16_bits(Format format, double x);

/// The value of `format` nearest to x, ties to even; overflow gives inf, subnormals are kept.
inline double round_to(Format format, double x) {
  if (format == Format::float64) return x;
  if (format == Format::float32) return static_cast<float>(x);
  return round_to_16_bits(format, x);
}

}  // namespace onepass::reference
