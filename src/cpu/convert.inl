// Rows between the caller's tensors (any dtype, any stride) and the compute form.

inline std::byte* address(const Strided& tensor, std::int64_t b, std::int64_t s, std::int64_t h) {
  return tensor.data + (b * tensor.b + s * tensor.s + h * tensor.h) * tensor.element_bytes;
}

/// Asks for a row that is needed soon: rows of one head lie too far apart for the hardware to guess
/// the next one.
template <bool to_write = false>
inline void prefetch_row(const std::byte* row, const Strided& tensor, std::int64_t count) {
  if (tensor.d != 1) return;
  for (std::int64_t i = 0; i < count * tensor.element_bytes; i += 64) {
    __builtin_prefetch(row + i, to_write);
  }
}
inline constexpr int rows_ahead = 16;

/// Rows of the tensor are reals side by side.
template <class Real>
inline bool stored_as(const Strided& tensor) {
  return tensor.dtype == (sizeof(Real) == 8 ? DType::float64 : DType::float32) && tensor.d == 1;
}

struct Half {
  std::uint16_t bits;
};
struct Brain {
  std::uint16_t bits;
};

inline float float_from_raw(std::uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}
inline std::uint32_t raw_bits(float x) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}

inline float widen(float x) { return x; }
inline double widen(double x) { return x; }
inline float widen(Brain x) { return float_from_raw(std::uint32_t{x.bits} << 16); }
inline float widen(Half x) {
  // Exponent and mantissa moved into place, rebiased by a multiplication that also makes
  // subnormals right; infinities and NaN get the full exponent.
  const std::uint32_t magnitude = std::uint32_t{x.bits & 0x7FFFU} << 13;
  const float scaled = float_from_raw(magnitude) * 0x1p112F;
  const std::uint32_t special = magnitude >= 0x0F800000U ? 0x7F800000U : 0U;
  return float_from_raw(raw_bits(scaled) | special | std::uint32_t{x.bits & 0x8000U} << 16);
}

// Round to nearest even, NaN stays NaN.
inline void narrow(double x, float* to) { *to = static_cast<float>(x); }
inline void narrow(double x, double* to) { *to = x; }
inline void narrow(float x, float* to) { *to = x; }
inline void narrow(float x, double* to) { *to = x; }
inline void narrow(float x, Brain* to) {
  const std::uint32_t bits = raw_bits(x);
  const std::uint32_t rounded = (bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16;
  to->bits = static_cast<std::uint16_t>(x != x ? bits >> 16 | 0x40U : rounded);
}
inline void narrow(float x, Half* to) {
  const std::uint32_t bits = raw_bits(x), sign = bits >> 16 & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  // Normal results: rebias and round in integers (a carry into infinity is right). Subnormal ones:
  // adding 1/2 leaves the rounded multiple of 2^-24 in the low bits.
  const std::uint32_t normal = (magnitude - 0x38000000U + 0xFFFU + (magnitude >> 13 & 1U)) >> 13;
  const std::uint32_t tiny = raw_bits(float_from_raw(magnitude) + 0.5F) - 0x3F000000U;
  std::uint32_t half = magnitude < 0x38800000U ? tiny : normal;
  half = magnitude >= 0x477FF000U ? 0x7C00U : half;
  half = magnitude > 0x7F800000U ? 0x7E00U : half;
  to->bits = static_cast<std::uint16_t>(half | sign);
}

/// to[i] = factor * from[i * stride] for i < count, and 0 up to `padded`.
template <class From, class To>
void widen_row(const void* from, std::int64_t stride, std::int64_t count, To factor, To* to,
               std::int64_t padded) {
  const From* source = static_cast<const From*>(from);
  if (stride == 1 && factor == To{1}) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = To(widen(source[i]));
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i] = factor * To(widen(source[i * stride]));
  }
  for (std::int64_t i = count; i < padded; ++i) to[i] = 0;
}

/// The row as operand units: reals, or bfloat16 elements for pairs; `padded` counts units.
template <class F>
void unit_row(const void* from, DType dtype, std::int64_t stride, std::int64_t count, double factor,
              typename F::unit* to, std::int64_t padded) {
  if constexpr (F::unit_elements == 2) {
    const Brain* source = static_cast<const Brain*>(from);
    Brain* target = reinterpret_cast<Brain*>(to);
    if (factor == 1.0) {
      for (std::int64_t i = 0; i < count; ++i) target[i] = source[i * stride];
    } else {
      for (std::int64_t i = 0; i < count; ++i) {
        narrow(float(factor) * widen(source[i * stride]), target + i);
      }
    }
    for (std::int64_t i = count; i < 2 * padded; ++i) target[i] = Brain{0};
  } else if constexpr (sizeof(typename F::real) == 8) {
    widen_row<double>(from, stride, count, factor, to, padded);
  } else if (dtype == DType::float32) {
    widen_row<float>(from, stride, count, float(factor), to, padded);
  } else if (dtype == DType::bfloat16) {
    widen_row<Brain>(from, stride, count, float(factor), to, padded);
  } else {
    widen_row<Half>(from, stride, count, float(factor), to, padded);
  }
}

template <class To, class Real>
void narrow_row(const Real* from, std::int64_t count, void* to, std::int64_t stride) {
  To* target = static_cast<To*>(to);
  if (stride == 1) {
    for (std::int64_t i = 0; i < count; ++i) narrow(from[i], target + i);
  } else {
    for (std::int64_t i = 0; i < count; ++i) narrow(from[i], target + i * stride);
  }
}

/// A finished row into a tensor of `dtype`.
template <class Real>
void output_row(const Real* from, std::int64_t count, void* to, DType dtype, std::int64_t stride) {
  if constexpr (sizeof(Real) == 8) {
    narrow_row<double>(from, count, to, stride);
  } else if (dtype == DType::float32) {
    narrow_row<float>(from, count, to, stride);
  } else if (dtype == DType::bfloat16) {
    narrow_row<Brain>(from, count, to, stride);
  } else {
    narrow_row<Half>(from, count, to, stride);
  }
}
