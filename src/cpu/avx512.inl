// AVX-512 vectors: 32 registers of 16 floats or 8 doubles.
// Zero-masking forms under a full mask stand for the plain ones, whose undefined pass-through
// operand makes GCC 12 warn; the instructions are the same.

// For the evaluator's elementary functions.
constexpr bool fused_multiply_add = true;

struct F32 : Portable<F32, float, 64> {
  static constexpr int block_vecs = 4;
  static constexpr __mmask16 all = 0xFFFF;
  static vec fma(vec a, vec b, vec c) { return _mm512_fmadd_ps(a, b, c); }
  // One correction of x * (1 / y) by its exact remainder: a quotient that is a number comes out as
  // that number. Where x is not finite the remainder is no number, and the product is right.
  static vec divide(vec x, vec y, vec reciprocal) {
    const vec q = x * reciprocal;
    const vec corrected = fma(fma(-q, y, x), reciprocal, q);
    return corrected == corrected ? corrected : q;
  }
  static vec max(vec a, vec b) { return _mm512_maskz_max_ps(all, a, b); }
  static vec hide(vec x, const std::uint8_t* visible) {
    const __m128i flags = _mm_loadu_si128(reinterpret_cast<const __m128i*>(visible));
    return _mm512_mask_mov_ps(set1(-infinity), _mm_test_epi8_mask(flags, flags), x);
  }
  static vec exp2(vec x) { return scaled_exp2<F32>(x); }
  template <class Fraction>
  static vec scaled_exp2(vec x) {
    const vec n = _mm512_maskz_roundscale_ps(all, x, _MM_FROUND_TO_NEAREST_INT);
    const __mmask16 normal = _mm512_cmp_ps_mask(x, set1(least_exponent), _CMP_NLT_UQ);
    return _mm512_maskz_scalef_ps(normal, Fraction::exp2_fraction(x - n), n);
  }
};

struct F64 : Portable<F64, double, 64> {
  static constexpr int block_vecs = 4;
  static constexpr __mmask8 all = 0xFF;
  static vec fma(vec a, vec b, vec c) { return _mm512_fmadd_pd(a, b, c); }
  // One correction of x * (1 / y) by its exact remainder: a quotient that is a number comes out as
  // that number. Where x is not finite the remainder is no number, and the product is right.
  static vec divide(vec x, vec y, vec reciprocal) {
    const vec q = x * reciprocal;
    const vec corrected = fma(fma(-q, y, x), reciprocal, q);
    return corrected == corrected ? corrected : q;
  }
  static vec max(vec a, vec b) { return _mm512_maskz_max_pd(all, a, b); }
  static vec hide(vec x, const std::uint8_t* visible) {
    const __m128i flags = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(visible));
    const auto seen = static_cast<__mmask8>(_mm_test_epi8_mask(flags, flags));
    return _mm512_mask_mov_pd(set1(-infinity), seen, x);
  }
  static vec exp2(vec x) {
    const vec n = _mm512_maskz_roundscale_pd(all, x, _MM_FROUND_TO_NEAREST_INT);
    const __mmask8 normal = _mm512_cmp_pd_mask(x, set1(least_exponent), _CMP_NLT_UQ);
    return _mm512_maskz_scalef_pd(normal, exp2_fraction(x - n), n);
  }
};
