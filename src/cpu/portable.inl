// A vector of Real and its operations in the compiler's vector extensions; an instruction set
// derives from it and replaces what it does better. Included inside a target's namespace.

template <class Real>
struct Bits;
template <>
struct Bits<float> {
  using type = std::int32_t;
  static constexpr int mantissa = 23, bias = 127;
};
template <>
struct Bits<double> {
  using type = std::int64_t;
  static constexpr int mantissa = 52, bias = 1023;
};

template <class Self, class Real, int vector_bytes>
struct Portable {
  using real = Real;
  using unit = Real;
  using integer = typename Bits<Real>::type;
  typedef Real vec __attribute__((vector_size(vector_bytes)));
  typedef integer bits __attribute__((vector_size(vector_bytes)));
  static constexpr int lanes = vector_bytes / sizeof(Real);
  static constexpr int unit_elements = 1;
  static constexpr int block_vecs = 2;  // columns of a register block, in vectors
  static constexpr Real infinity = __builtin_huge_val();

  static vec set1(Real x) { return x - vec{}; }
  static vec load(const void* from) {
    vec x;
    __builtin_memcpy(&x, from, sizeof x);
    return x;
  }
  static void store(void* to, vec x) { __builtin_memcpy(to, &x, sizeof x); }
  static vec fma(vec a, vec b, vec c) { return a * b + c; }
  /// b where either is NaN.
  static vec max(vec a, vec b) { return a > b ? a : b; }
  static Real reduce_max(vec x) { return reduce_max(x, std::make_integer_sequence<int, lanes>()); }
  static Real reduce_add(vec x) { return reduce_add(x, std::make_integer_sequence<int, lanes>()); }
  /// x / y, given 1 / y.
  static vec divide(vec x, vec y, vec) { return x / y; }
  /// x where visible, else -inf.
  static vec hide(vec x, const std::uint8_t* visible) {
    typedef std::uint8_t flags __attribute__((vector_size(lanes)));
    flags f;
    __builtin_memcpy(&f, visible, sizeof f);
    return __builtin_convertvector(f, bits) != 0 ? x : set1(-infinity);
  }

  // 16-bit floats to float32 lanes, as widen() in convert.inl.
  static vec load_bfloat16(const void* from) {
    return reinterpret_cast<vec>(load_words(from) << 16);
  }
  static vec load_float16(const void* from) {
    const bits word = load_words(from), magnitude = (word & 0x7FFF) << 13;
    const vec scaled = reinterpret_cast<vec>(magnitude) * set1(0x1p112F);
    const bits special = (magnitude >= 0x0F800000) & 0x7F800000;
    return reinterpret_cast<vec>(reinterpret_cast<bits>(scaled) | special | (word & 0x8000) << 16);
  }

  /// x in lanes [begin, end), else -inf.
  static vec keep_lanes(vec x, int begin, int end) {
    const bits lane = lane_numbers(std::make_integer_sequence<int, lanes>());
    return ((lane >= begin) & (lane < end)) ? x : set1(-infinity);
  }

  // Operand units of the two products.
  static vec broadcast(const unit* a) { return set1(*a); }
  static vec dot(vec a, vec b, vec sum) { return Self::fma(a, b, sum); }
  /// A unit row of V; of a pair, only the halves of visible keys.
  static vec load_visible(const unit* v, const std::uint8_t*) { return load(v); }
  /// Weights of columns col .. col + 2 * lanes, over the scores of the same row.
  static void store_weights(Real* row, std::int64_t col, vec p0, vec p1) {
    store(row + col, p0);
    store(row + col + lanes, p1);
  }

  /// Smaller weights are nothing beside the row's largest, which is 1, and their products would be
  /// denormal numbers, which take a hundred times as long.
  static constexpr Real least_exponent = 14 - Bits<Real>::bias;

  /// 2^f for |f| <= 1/2; exactly 1 at 0. Minimax in relative error: float 9e-8, double 2e-17.
  static vec exp2_fraction(vec f) {
    if constexpr (sizeof(Real) == 4) {
      return polynomial(f, 0.0013264725F, 0.0096715130F, 0.0555073359F, 0.2402224243F,
                        0.6931470037F, 1.0F);
    } else {
      return polynomial(f, 4.077845218816289e-10, 7.0725702510954835e-09, 1.0180649218486407e-07,
                        1.3215442675600723e-06, 1.5252727381314832e-05, 0.00015403530441573268,
                        0.0013333558153444142, 0.009618129107607, 0.05550410866479038,
                        0.24022650695910097, 0.6931471805599457, 1.0);
    }
  }
  /// 2^x for x <= a little above 0, 0 below 2^least_exponent; NaN stays.
  static vec exp2(vec x) { return scaled_exp2<Self>(x); }
  static vec weight_exp2(vec x) { return Self::exp2(x); }

  template <class... Reals>
  static vec polynomial(vec f, Real highest, Reals... rest) {
    vec sum = set1(highest);
    ((sum = Self::fma(sum, f, set1(rest))), ...);
    return sum;
  }
  // Adding 1.5 * 2^mantissa + bias leaves round(x) + bias in the low bits: shifted up, that is
  // the exponent field of 2^round(x).
  template <class Fraction>
  static vec scaled_exp2(vec x) {
    constexpr int mantissa = Bits<Real>::mantissa, bias = Bits<Real>::bias;
    constexpr Real magic = Real(std::int64_t{3} << (mantissa - 1)) + bias;
    const vec shifted = x + set1(magic);
    const vec f = x - (shifted - set1(magic));
    const vec power = reinterpret_cast<vec>(reinterpret_cast<bits>(shifted) << mantissa);
    const vec result = Fraction::exp2_fraction(f) * power;
    return x < set1(least_exponent) ? vec{} : result;
  }

  // Perfect shuffles: log2(lanes) rounds of them transpose a square.
  static vec interleave_low(vec a, vec b) {
    return interleave<0>(a, b, std::make_integer_sequence<int, lanes>());
  }
  static vec interleave_high(vec a, vec b) {
    return interleave<lanes / 2>(a, b, std::make_integer_sequence<int, lanes>());
  }

 private:
  static bits load_words(const void* from) {
    typedef std::uint16_t words __attribute__((vector_size(lanes * 2)));
    words x;
    __builtin_memcpy(&x, from, sizeof x);
    return __builtin_convertvector(x, bits);
  }
  template <int... i>
  static bits lane_numbers(std::integer_sequence<int, i...>) {
    return bits{i...};
  }
  // Halves folded onto each other: lane i takes lane i ^ half.
  template <int half = lanes / 2, int... i>
  static Real reduce_max(vec x, std::integer_sequence<int, i...> all) {
    x = Self::max(x, __builtin_shufflevector(x, x, (i ^ half)...));
    if constexpr (half == 1) {
      return x[0];
    } else {
      return reduce_max<half / 2>(x, all);
    }
  }
  template <int half = lanes / 2, int... i>
  static Real reduce_add(vec x, std::integer_sequence<int, i...> all) {
    x += __builtin_shufflevector(x, x, (i ^ half)...);
    if constexpr (half == 1) {
      return x[0];
    } else {
      return reduce_add<half / 2>(x, all);
    }
  }
  template <int from, int... i>
  static vec interleave(vec a, vec b, std::integer_sequence<int, i...>) {
    return __builtin_shufflevector(a, b, (from + i / 2 + i % 2 * lanes)...);
  }
};
