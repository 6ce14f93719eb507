// NEON vectors: 32 registers of 4 floats or 2 doubles.

// For the evaluator's elementary functions.
constexpr bool fused_multiply_add = true;

struct F32 : Portable<F32, float, 16> {
  static constexpr int block_vecs = 4;
  static vec fma(vec a, vec b, vec c) { return vfmaq_f32(c, a, b); }
};

struct F64 : Portable<F64, double, 16> {
  static constexpr int block_vecs = 4;
  static vec fma(vec a, vec b, vec c) { return vfmaq_f64(c, a, b); }
};
