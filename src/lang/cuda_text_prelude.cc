#include "lang/cuda_text.h"

namespace onepass::lang {

// What masks compute in float goes through __fadd_rn and its like, which the compiler neither
// contracts nor approximates, whatever its options.
std::string cuda_text_prelude() {
  return R"(namespace onepass_text {

using int64 = long long;
using uint64 = unsigned long long;

// One (sequence, query head).
struct Scope {
  int64 b, h, h_kv, s_q, s_kv, q_start, k_start, token_q_start, token_k_start;
};

// Integers wrap; 32-bit ones never have to, for then they would be 64-bit ones.
__forceinline__ int64 add(int64 a, int64 b) { return int64(uint64(a) + uint64(b)); }
__forceinline__ int64 subtract(int64 a, int64 b) { return int64(uint64(a) - uint64(b)); }
__forceinline__ int64 multiply(int64 a, int64 b) { return int64(uint64(a) * uint64(b)); }
__forceinline__ int add(int a, int b) { return a + b; }
__forceinline__ int subtract(int a, int b) { return a - b; }
__forceinline__ int multiply(int a, int b) { return a * b; }
template <class Int>
__forceinline__ Int negate(Int a) {
  return subtract(Int(0), a);
}
template <class Int>
__forceinline__ Int absolute(Int a) {
  return a < 0 ? negate(a) : a;
}

// Floor division and its remainder; divisor 0 gives 0.
template <class Int>
__forceinline__ Int floor_divide(Int a, Int b) {
  if (b == 0) return 0;
  if (b == -1) return negate(a);
  const Int quotient = a / b;
  return quotient * b != a && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}
template <class Int>
__forceinline__ Int modulo(Int a, Int b) {
  if (b == 0 || b == -1) return 0;
  const Int rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

// NaN if either is NaN; of equals the second.
template <class T>
__forceinline__ T minimum(T a, T b) {
  return a < b || a != a ? a : b;
}
template <class T>
__forceinline__ T maximum(T a, T b) {
  return a > b || a != a ? a : b;
}

__forceinline__ float real(int a) { return __int2float_rn(a); }
__forceinline__ float real(int64 a) { return __ll2float_rn(a); }
__forceinline__ float infinity() { return __uint_as_float(0x7f800000u); }
__forceinline__ float not_a_number() { return __uint_as_float(0x7fc00000u); }

// Scores: division by what many pairs share. The reciprocal is 0 where it would not do.
__forceinline__ float reciprocal(float b) {
  const float size = fabsf(b);
  return size > 1e-30f && size < 1e30f ? __fdiv_rn(1.0f, b) : 0.0f;
}
__forceinline__ float divide_by_shared(float a, float b, float reciprocal_of_b) {
  return reciprocal_of_b != 0.0f ? a * reciprocal_of_b : __fdiv_rn(a, b);
}
// 1 - 2 / (e^2x + 1): absolute error about 2^-22, from two special-function instructions. The
// single tanh instruction is off by 2^-11, too much for a logit cap of 30.
__forceinline__ float fast_tanh(float x) {
  return 1.0f - __fdividef(2.0f, __expf(2.0f * x) + 1.0f);
}

// Array elements.
struct Bfloat16 {
  unsigned short bits;
};
struct Float16 {
  unsigned short bits;
};
__forceinline__ float element(float x) { return x; }
__forceinline__ float element(double x) { return __double2float_rn(x); }
__forceinline__ float element(Bfloat16 x) { return __uint_as_float(unsigned(x.bits) << 16); }
__forceinline__ float element(Float16 x) {
  const unsigned rest = x.bits & 0x7fffu;
  const float subnormal = __int2float_rn(int(rest)) * 5.9604644775390625e-08f;
  const float normal =
      __uint_as_float((rest << 13) + (rest >= 0x7c00u ? 0x70000000u : 0x38000000u));
  const float size = rest < 0x0400u ? subnormal : normal;
  return x.bits >= 0x8000u ? -size : size;
}
template <class Int>
__forceinline__ bool inside(Int index, int64 shape) {
  return uint64(int64(index)) < uint64(shape);
}

// Column limits are computed in 64 bits from 32-bit terms.
__forceinline__ int clamp_int(int64 a) {
  return a < -2147483647 ? -2147483647 : a > 2147483647 ? 2147483647 : int(a);
}
__forceinline__ int lower(int a, int b) { return a < b ? a : b; }
__forceinline__ int higher(int a, int b) { return a > b ? a : b; }

}  // namespace onepass_text
)";
}

}  // namespace onepass::lang
