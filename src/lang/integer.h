// Integer arithmetic of the language: two's complement, floor division, x // 0 = x % 0 = 0.
#pragma once

#include <cstdint>

namespace onepass::lang::intervals {

inline std::int64_t wrapping_add(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

inline std::int64_t wrapping_subtract(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

inline std::int64_t wrapping_multiply(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

inline std::int64_t wrapping_absolute(std::int64_t a) {
  return a < 0 ? wrapping_subtract(0, a) : a;
}

inline std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return wrapping_subtract(0, a);
  return a / b - ((a % b != 0) && ((a < 0) != (b < 0)) ? 1 : 0);
}

inline std::int64_t floor_remainder(std::int64_t a, std::int64_t b) {
  if (b == 0 || b == -1) return 0;
  const std::int64_t remainder = a % b;
  return remainder != 0 && ((remainder < 0) != (b < 0)) ? remainder + b : remainder;
}

}  // namespace onepass::lang::intervals
