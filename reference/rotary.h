// Rotary position embedding (Su et al., 2021) of one vector.
#pragma once

#include <span>

namespace onepass::reference {

/// Turns pair i of x by the angle whose cosine and sine are given; pairs are (0, 1), (2, 3), ...
/// when interleaved, else (i, i + number of pairs). What lies beyond the pairs stays.
inline void rotate(std::span<double> x, std::span<const double> cos, std::span<const double> sin,
                   bool interleaved) {
  for (std::size_t i = 0; i < cos.size(); ++i) {
    double& a = x[interleaved ? 2 * i : i];
    double& b = x[interleaved ? 2 * i + 1 : i + cos.size()];
    const double turned = a * cos[i] - b * sin[i];
    b = a * sin[i] + b * cos[i];
    a = turned;
  }
}

}  // namespace onepass::reference
