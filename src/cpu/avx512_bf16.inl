// bfloat16 pairs on top of AVX-512: one instruction sums two products in float32 per lane.

struct Bf16Pairs : F32 {
  using unit = std::uint32_t;
  static constexpr int unit_elements = 2;
  static vec broadcast(const unit* a) {
    return _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int>(*a)));
  }
  static vec dot(vec a, vec b, vec sum) {
    return _mm512_dpbf16_ps(sum, (__m512bh)(a), (__m512bh)(b));
  }
  static vec load_visible(const unit* v, const std::uint8_t* hidden) {
    const unsigned halves = (hidden[0] ? 0U : 0xFFFFU) | (hidden[1] ? 0U : 0xFFFF0000U);
    return _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(load(v)),
                                                _mm512_set1_epi32(static_cast<int>(halves))));
  }
  static void store_weights(float* row, std::int64_t col, vec p0, vec p1) {
    const auto pairs = _mm512_cvtne2ps_pbh(p1, p0);
    __builtin_memcpy(reinterpret_cast<std::byte*>(row) + col * 2, &pairs, sizeof pairs);
  }
  /// Degree 3, relative error 1e-4: far below the weight's own rounding to 8 bits.
  static vec exp2_fraction(vec f) {
    return polynomial(f, 0.0550089329F, 0.2422109544F, 0.6932829022F, 1.0F);
  }
  static vec weight_exp2(vec x) { return scaled_exp2<Bf16Pairs>(x); }
};
