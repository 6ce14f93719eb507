// AVX2 and FMA vectors: 16 registers of 8 floats or 4 doubles.

// For the evaluator's elementary functions.
constexpr bool fused_multiply_add = true;

struct F32 : Portable<F32, float, 32> {
  static vec fma(vec a, vec b, vec c) { return _mm256_fmadd_ps(a, b, c); }
  static vec max(vec a, vec b) { return _mm256_max_ps(a, b); }
};

struct F64 : Portable<F64, double, 32> {
  static vec fma(vec a, vec b, vec c) { return _mm256_fmadd_pd(a, b, c); }
  static vec max(vec a, vec b) { return _mm256_max_pd(a, b); }
};
