// The float formats of the tested kernels, as roundings of a double.
#pragma once

namespace onepass::reference {

enum class Format { float64, float32, bfloat16, float16 };

/// The value of `format` nearest to x, ties to even; overflow gives inf, subnormals are kept.
double round_to(Format format, double x);

}  // namespace onepass::reference
