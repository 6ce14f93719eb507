// AVX-512 vectors: 32 registers of 16 floats or 8 doubles.

struct F32 : Portable<F32, float, 64> {
  static constexpr int block_vecs = 4;
  static vec fma(vec a, vec b, vec c) { return _mm512_fmadd_ps(a, b, c); }
  static vec max(vec a, vec b) { return _mm512_max_ps(a, b); }
  static float reduce_max(vec x) { return _mm512_reduce_max_ps(x); }
  static float reduce_add(vec x) { return _mm512_reduce_add_ps(x); }
  static vec hide(vec x, const std::uint8_t* visible) {
    const __m128i flags = _mm_loadu_si128(reinterpret_cast<const __m128i*>(visible));
    const __mmask16 seen = _mm_test_epi8_mask(flags, flags);
    return _mm512_mask_mov_ps(set1(-infinity), seen, x);
  }
  static vec exp2(vec x) { return scaled_exp2<F32>(x); }
  template <class Fraction>
  static vec scaled_exp2(vec x) {
    const vec n = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    return _mm512_scalef_ps(Fraction::exp2_fraction(x - n), n);
  }
};

struct F64 : Portable<F64, double, 64> {
  static constexpr int block_vecs = 4;
  static vec fma(vec a, vec b, vec c) { return _mm512_fmadd_pd(a, b, c); }
  static vec max(vec a, vec b) { return _mm512_max_pd(a, b); }
  static double reduce_max(vec x) { return _mm512_reduce_max_pd(x); }
  static double reduce_add(vec x) { return _mm512_reduce_add_pd(x); }
  static vec hide(vec x, const std::uint8_t* visible) {
    const __m128i flags = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(visible));
    const __mmask8 seen = static_cast<__mmask8>(_mm_test_epi8_mask(flags, flags));
    return _mm512_mask_mov_pd(set1(-infinity), seen, x);
  }
  static vec exp2(vec x) {
    const vec n = _mm512_roundscale_pd(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    return _mm512_scalef_pd(exp2_fraction(x - n), n);
  }
};
