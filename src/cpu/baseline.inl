// 16-byte vectors that every supported machine has; no fused multiply-add.

// For the evaluator's elementary functions.
constexpr bool fused_multiply_add = false;

struct F32 : Portable<F32, float, 16> {};
struct F64 : Portable<F64, double, 16> {};
