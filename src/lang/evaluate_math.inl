// Elementary functions on one lane, written so that loops over them vectorise: no branches, no
// calls. Part of evaluate.inl. Polynomials are minimax fits (Remez) on the reduced range. Largest
// errors that evaluate_math_test finds, in units in the last place: exp 1.0, log 0.9, tanh 2.5.

inline float bits_as_float(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }
inline double bits_as_double(std::uint64_t bits) { return __builtin_bit_cast(double, bits); }
inline std::uint32_t bits_of(float x) { return __builtin_bit_cast(std::uint32_t, x); }
inline std::uint64_t bits_of(double x) { return __builtin_bit_cast(std::uint64_t, x); }

// a * b + c; fused where the instruction set has it. For elementary functions only: the arithmetic
// of an expression is never contracted.
inline float multiply_add(float a, float b, float c) {
  if constexpr (fused_multiply_add) return __builtin_fmaf(a, b, c);
  return a * b + c;
}
inline double multiply_add(double a, double b, double c) {
  if constexpr (fused_multiply_add) return __builtin_fma(a, b, c);
  return a * b + c;
}

inline float magnitude(float x) { return bits_as_float(bits_of(x) & 0x7fffffffu); }
inline double magnitude(double x) { return bits_as_double(bits_of(x) & 0x7fffffffffffffffu); }
inline float with_sign(float x, float sign) {
  return bits_as_float((bits_of(x) & 0x7fffffffu) | (bits_of(sign) & 0x80000000u));
}
inline double with_sign(double x, double sign) {
  return bits_as_double((bits_of(x) & 0x7fffffffffffffffu) | (bits_of(sign) & 0x8000000000000000u));
}

// Adding and taking away 2^(digits - 1) rounds to an integer; one less where that went up.
template <class Real>
inline Real floor_of(Real x) {
  constexpr Real big = sizeof(Real) == 4 ? Real(8388608.0) : Real(4503599627370496.0);
  const Real size = magnitude(x);
  const Real rounded = with_sign((size + big) - big, x);
  const Real down = rounded - (rounded > x ? Real(1) : Real(0));
  return size < big ? down : x;
}

// x = n ln 2 + r with |r| <= ln(2) / 2; returns e^r - 1.
// n is unsigned because it wraps: NaN makes any number of it.
struct ReducedFloat {
  float expm1_r;
  std::uint32_t n;
};
struct ReducedDouble {
  double expm1_r;
  std::uint64_t n;
};
inline ReducedFloat reduce(float x) {
  constexpr float magic = 12582912.0f;  // 1.5 * 2^23: the sum's low bits are the rounded integer
  const float shifted = multiply_add(x, 1.44269504f, magic);
  const float n = shifted - magic;
  float r = multiply_add(n, -0.693145751953125f, x);  // 15 bits: exact without a fused product
  r = multiply_add(n, -1.42860682e-06f, r);
  float p = 0.00139469909f;
  p = multiply_add(p, r, 0.00836691074f);
  p = multiply_add(p, r, 0.041666273f);
  p = multiply_add(p, r, 0.166665405f);
  p = multiply_add(p, r, 0.5f);
  return {multiply_add(r * r, p, r), bits_of(shifted) - bits_of(magic)};
}
inline ReducedDouble reduce(double x) {
  constexpr double magic = 6755399441055744.0;  // 1.5 * 2^52
  const double shifted = multiply_add(x, 1.4426950408889634, magic);
  const double n = shifted - magic;
  double r = multiply_add(n, -0x1.62e42fefa4p-1, x);
  r = multiply_add(n, 0x1.8432a1b0e2634p-43, r);
  double p = 2.0924912128801807e-09;
  p = multiply_add(p, r, 2.5109604715353332e-08);
  p = multiply_add(p, r, 2.7557241258346386e-07);
  p = multiply_add(p, r, 2.7557242699713185e-06);
  p = multiply_add(p, r, 2.4801587362284127e-05);
  p = multiply_add(p, r, 0.00019841269887494598);
  p = multiply_add(p, r, 0.0013888888888865985);
  p = multiply_add(p, r, 0.008333333333321149);
  p = multiply_add(p, r, 0.041666666666666706);
  p = multiply_add(p, r, 0.16666666666666677);
  p = multiply_add(p, r, 0.5);
  return {multiply_add(r * r, p, r), bits_of(shifted) - bits_of(magic)};
}

// 2^n for n in the normal range.
inline float power_of_two(std::uint32_t n) { return bits_as_float((n + 127) << 23); }
inline double power_of_two(std::uint64_t n) { return bits_as_double((n + 1023) << 52); }

// 2^n in two factors, so that the result overflows and underflows gradually. NaN passes the clamps.
inline float exp_of(float x) {
  x = x > 90.0f ? 90.0f : x;
  x = x < -105.0f ? -105.0f : x;
  const ReducedFloat reduced = reduce(x);
  const std::uint32_t half = ((reduced.n + 256) >> 1) - 128;
  return (1.0f + reduced.expm1_r) * power_of_two(half) * power_of_two(reduced.n - half);
}
inline double exp_of(double x) {
  x = x > 711.0 ? 711.0 : x;
  x = x < -747.0 ? -747.0 : x;
  const ReducedDouble reduced = reduce(x);
  const std::uint64_t half = ((reduced.n + 2048) >> 1) - 1024;
  return (1.0 + reduced.expm1_r) * power_of_two(half) * power_of_two(reduced.n - half);
}

// tanh |x| = E / (E + 2) with E = e^(2|x|) - 1 = 2^n (e^r - 1) + (2^n - 1): no cancellation near 0.
// Beyond the clamp the quotient rounds to 1.
inline float tanh_of(float x) {
  float size = magnitude(x);
  size = size > 10.0f ? 10.0f : size;
  const ReducedFloat reduced = reduce(2.0f * size);
  const float scale = power_of_two(reduced.n);
  const float grown = multiply_add(scale, reduced.expm1_r, scale - 1.0f);
  return with_sign(grown / (grown + 2.0f), x);
}
inline double tanh_of(double x) {
  double size = magnitude(x);
  size = size > 20.0 ? 20.0 : size;
  const ReducedDouble reduced = reduce(2.0 * size);
  const double scale = power_of_two(reduced.n);
  const double grown = multiply_add(scale, reduced.expm1_r, scale - 1.0);
  return with_sign(grown / (grown + 2.0), x);
}

// x = 2^e m with m in [sqrt(1/2), sqrt(2)), f = m - 1, s = f / (2 + f), z = s^2:
// log m = 2 atanh(s) = f - s (f - R) with R = 2 (z / 3 + z^2 / 5 + ...).
inline float log_of(float x) {
  const bool small = x < 1.17549435e-38f;
  const float scaled = x * 8388608.0f;
  const float normal = small ? scaled : x;
  const std::uint32_t shifted = bits_of(normal) + (0x3f800000u - 0x3f3504f3u);
  const float e =
      static_cast<float>(static_cast<std::int32_t>(shifted >> 23)) - (small ? 150.0f : 127.0f);
  const float f = bits_as_float((shifted & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
  const float s = f / (2.0f + f);
  const float z = s * s;
  float p = 0.298744172f;
  p = multiply_add(p, z, 0.399774492f);
  p = multiply_add(p, z, 0.666667759f);
  const float low = multiply_add(e, 1.42860682e-06f, -s * (f - z * p));
  const float result = multiply_add(e, 0.693145751953125f, low + f);
  const float special = x == 0.0f ? -__builtin_inff() : __builtin_nanf("");
  const float outside = x > 0.0f ? x : special;  // inf, 0, negative or NaN
  return ((x > 0.0f) & (x < __builtin_inff())) ? result : outside;
}
inline double log_of(double x) {
  const bool small = x < 2.2250738585072014e-308;
  const double scaled = x * 18014398509481984.0;  // 2^54
  const double normal = small ? scaled : x;
  const std::uint64_t shifted = bits_of(normal) + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
  const double e = (bits_as_double((shifted >> 52) | 0x4330000000000000u) - 4503599627370496.0) -
                   (small ? 1077.0 : 1023.0);
  const double f = bits_as_double((shifted & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s;
  double p = 0.14764316782665013;
  p = multiply_add(p, z, 0.15317495221629074);
  p = multiply_add(p, z, 0.18183415785173548);
  p = multiply_add(p, z, 0.22222201781600512);
  p = multiply_add(p, z, 0.2857142870638604);
  p = multiply_add(p, z, 0.3999999999960876);
  p = multiply_add(p, z, 0.6666666666666696);
  const double low = multiply_add(e, -0x1.8432a1b0e2634p-43, -s * (f - z * p));
  const double result = multiply_add(e, 0x1.62e42fefa4p-1, low + f);
  const double special = x == 0.0 ? -__builtin_inf() : __builtin_nan("");
  const double outside = x > 0.0 ? x : special;
  return ((x > 0.0) & (x < __builtin_inf())) ? result : outside;
}
