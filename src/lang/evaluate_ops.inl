// The operations of the language on one lane. Part of evaluate.inl; also the scalar steps use them.

template <class T>
struct Lane;  // real: float arithmetic; Unsigned: the type whose arithmetic wraps
template <>
struct Lane<float> {
  static constexpr bool real = true;
};
template <>
struct Lane<double> {
  static constexpr bool real = true;
};
template <>
struct Lane<std::uint8_t> {
  static constexpr bool real = false;
  using Unsigned = std::uint32_t;
};
template <>
struct Lane<std::int32_t> {
  static constexpr bool real = false;
  using Unsigned = std::uint32_t;
};
template <>
struct Lane<std::int64_t> {
  static constexpr bool real = false;
  using Unsigned = std::uint64_t;
};

template <class T>
inline T wrapped(typename Lane<T>::Unsigned value) {
  return static_cast<T>(value);
}
template <class T>
inline typename Lane<T>::Unsigned bits(T value) {
  return static_cast<typename Lane<T>::Unsigned>(value);
}

// Floor division of integers; divisor 0 gives 0. The quotient of two int32 in double is right after
// rounding down: the true quotient is at least 1 / |b| below the next integer, the error far less.
inline std::int32_t floor_quotient(std::int32_t a, std::int32_t b) {
  const double quotient = static_cast<double>(a) / static_cast<double>(b == 0 ? 1 : b);
  const double inside = quotient > 2147483647.0 ? -2147483648.0 : quotient;  // only -2^31 // -1
  const std::int32_t truncated = static_cast<std::int32_t>(inside);
  const std::int32_t down = static_cast<double>(truncated) > inside ? 1 : 0;
  return b == 0 ? 0 : truncated - down;
}
inline std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return wrapped<std::int64_t>(0 - bits(a));
  const std::int64_t truncated = a / b;
  return truncated - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}
inline float floor_quotient(float a, float b) { return floor_of(a / b); }
inline double floor_quotient(double a, double b) { return floor_of(a / b); }

struct Negate {
  template <class T>
  static T of(T a) {
    if constexpr (Lane<T>::real) {
      return -a;
    } else {
      return wrapped<T>(0 - bits(a));
    }
  }
};
struct Absolute {
  template <class T>
  static T of(T a) {
    if constexpr (Lane<T>::real) {
      return magnitude(a);
    } else {
      return a < 0 ? wrapped<T>(0 - bits(a)) : a;
    }
  }
};
struct Add {
  template <class T>
  static T of(T a, T b) {
    if constexpr (Lane<T>::real) {
      return a + b;
    } else {
      return wrapped<T>(bits(a) + bits(b));
    }
  }
};
struct Subtract {
  template <class T>
  static T of(T a, T b) {
    if constexpr (Lane<T>::real) {
      return a - b;
    } else {
      return wrapped<T>(bits(a) - bits(b));
    }
  }
};
struct Multiply {
  template <class T>
  static T of(T a, T b) {
    if constexpr (Lane<T>::real) {
      return a * b;
    } else {
      return wrapped<T>(bits(a) * bits(b));
    }
  }
};
struct Divide {
  template <class T>
  static T of(T a, T b) {
    return a / b;
  }
};
struct FloorDivide {
  template <class T>
  static T of(T a, T b) {
    return floor_quotient(a, b);
  }
};
struct Modulo {
  template <class T>
  static T of(T a, T b) {
    const T whole = Multiply::of(b, floor_quotient(a, b));
    const T rest = Subtract::of(a, whole);
    if constexpr (Lane<T>::real) {
      return rest;
    } else {
      return b == 0 ? 0 : rest;
    }
  }
};
// NaN if either is NaN; of two zeros, or equals, the second.
struct Minimum {
  template <class T>
  static T of(T a, T b) {
    return ((a < b) | (a != a)) ? a : b;
  }
};
struct Maximum {
  template <class T>
  static T of(T a, T b) {
    return ((a > b) | (a != a)) ? a : b;
  }
};
struct Floor {
  template <class T>
  static T of(T a) {
    return floor_of(a);
  }
};
struct SquareRoot {
  static float of(float a) { return __builtin_sqrtf(a); }
  static double of(double a) { return __builtin_sqrt(a); }
};
struct Exponential {
  template <class T>
  static T of(T a) {
    return exp_of(a);
  }
};
struct Logarithm {
  template <class T>
  static T of(T a) {
    return log_of(a);
  }
};
struct HyperbolicTangent {
  template <class T>
  static T of(T a) {
    return tanh_of(a);
  }
};
struct LogicalNot {
  static std::uint8_t of(std::uint8_t a) { return a ^ 1; }
};
struct LogicalAnd {
  static std::uint8_t of(std::uint8_t a, std::uint8_t b) { return a & b; }
};
struct LogicalOr {
  static std::uint8_t of(std::uint8_t a, std::uint8_t b) { return a | b; }
};
struct Less {
  template <class T>
  static std::uint8_t of(T a, T b) {
    return a < b;
  }
};
struct LessEqual {
  template <class T>
  static std::uint8_t of(T a, T b) {
    return a <= b;
  }
};
struct Equal {
  template <class T>
  static std::uint8_t of(T a, T b) {
    return a == b;
  }
};
struct NotEqual {
  template <class T>
  static std::uint8_t of(T a, T b) {
    return a != b;
  }
};

// Elements of array arguments. Half-precision values are exact in float32.
struct Bfloat16 {
  std::uint16_t bits;
};
struct Float16 {
  std::uint16_t bits;
};
inline float as_real(Bfloat16 x) { return bits_as_float(static_cast<std::uint32_t>(x.bits) << 16); }
inline float as_real(Float16 x) {
  const std::uint32_t rest = x.bits & 0x7fffu;
  // Subnormal halves are integer multiples of 2^-24; computed so, they survive flush-to-zero modes.
  const float subnormal = static_cast<float>(static_cast<std::int32_t>(rest)) * 0x1p-24f;
  const std::uint32_t top = rest >= 0x7c00u ? 0x70000000u : 0x38000000u;
  const float normal = bits_as_float((rest << 13) + top);
  const float size = rest < 0x0400u ? subnormal : normal;
  return bits_as_float(bits_of(size) | (x.bits & 0x8000u) << 16);
}
inline float as_real(float x) { return x; }
inline double as_real(double x) { return x; }
