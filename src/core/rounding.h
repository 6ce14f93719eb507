// Whole pieces of a size. For the code that plans: no kernel includes it.
#pragma once

#include <cstdint>

namespace onepass {

inline std::int64_t divide_up(std::int64_t x, std::int64_t by) { return (x + by - 1) / by; }
inline std::int64_t round_up(std::int64_t x, std::int64_t multiple) {
  return divide_up(x, multiple) * multiple;
}

}  // namespace onepass
