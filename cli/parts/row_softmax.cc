// Rows by vectors of the width found at run time.
#include "cli/parts/row_softmax.h"

#include <cstring>
#include <limits>

namespace onepass::cli {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

template <int bytes>
struct Vectors {
  using Float [[gnu::vector_size(bytes)]] = float;
  using Integer [[gnu::vector_size(bytes)]] = std::int32_t;
};

// x becomes e^x, for x <= 0, by Cody and Waite 1980: x = n ln 2 + r, a polynomial for e^r, n into
// the exponent.
template <class V>
[[gnu::always_inline]] inline void exponential(typename V::Float& x) {
  constexpr float log2_e = 1.44269504f, ln_2_high = 0.693359375f, ln_2_low = -2.12194440e-4f;
  constexpr float to_integer = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const typename V::Float zero{};
  const typename V::Float clamped = x < -87.0f ? zero - 87.0f : x;
  const typename V::Float n = (clamped * log2_e + to_integer) - to_integer;
  const typename V::Float r = (clamped - n * ln_2_high) - n * ln_2_low;
  typename V::Float p = r * (1.0f / 720.0f) + 1.0f / 120.0f;
  p = p * r + 1.0f / 24.0f;
  p = p * r + 1.0f / 6.0f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const auto power = (__builtin_convertvector(n, typename V::Integer) + 127) << 23;
  typename V::Float scale;
  std::memcpy(&scale, &power, sizeof scale);
  x = x < -87.0f ? zero : p * scale;
}

// Calls body(vector) for every whole or padded vector of the row and stores what it leaves there.
template <class V, class Body>
[[gnu::always_inline]] inline void each_vector(float* row, std::int64_t n, float padding,
                                               const Body& body) {
  constexpr std::int64_t lanes = sizeof(typename V::Float) / sizeof(float);
  typename V::Float x;
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    std::memcpy(&x, row + i, sizeof x);
    body(x);
    std::memcpy(row + i, &x, sizeof x);
  }
  if (i == n) return;
  x = typename V::Float{} + padding;
  for (std::int64_t j = i; j < n; ++j) x[j - i] = row[j];
  body(x);
  for (std::int64_t j = i; j < n; ++j) row[j] = x[j - i];
}

template <class V>
[[gnu::always_inline]] inline void softmax(float* row, std::int64_t n, float sink) {
  using Float = typename V::Float;
  constexpr int lanes = sizeof(Float) / sizeof(float);
  Float most = Float{} + sink;
  each_vector<V>(
      row, n, sink, [&](Float & x) __attribute__((always_inline)) { most = x > most ? x : most; });
  float top = sink;
  for (int j = 0; j < lanes; ++j) top = most[j] > top ? most[j] : top;
  if (top == -infinity) top = 0.0f;  // nothing visible: every weight is 0
  Float sums{};
  each_vector<V>(
      row, n, -infinity, [&](Float & x) __attribute__((always_inline)) {
        x -= top;
        exponential<V>(x);
        sums += x;
      });
  Float last = Float{} + (sink - top);
  exponential<V>(last);
  float sum = last[0];
  for (int j = 0; j < lanes; ++j) sum += sums[j];
  const float factor = sum == 0.0f ? 0.0f : 1.0f / sum;
  each_vector<V>(
      row, n, 0.0f, [&](Float & x) __attribute__((always_inline)) { x *= factor; });
}

void softmax_narrow(float* row, std::int64_t n, float sink) { softmax<Vectors<16>>(row, n, sink); }

using Softmax = void (*)(float*, std::int64_t, float);
#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] void softmax_avx2(float* row, std::int64_t n, float sink) {
  softmax<Vectors<32>>(row, n, sink);
}
[[gnu::target("avx512f,fma")]] void softmax_avx512(float* row, std::int64_t n, float sink) {
  softmax<Vectors<64>>(row, n, sink);
}
Softmax choose() {
  if (__builtin_cpu_supports("avx512f")) return softmax_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return softmax_avx2;
  return softmax_narrow;
}
#else
Softmax choose() { return softmax_narrow; }
#endif

}  // namespace

void scale_row(float* row, std::int64_t n, float factor) {
  for (std::int64_t i = 0; i < n; ++i) row[i] *= factor;
}

void hide_row(float* row, const std::uint8_t* mask, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) row[i] = mask[i] != 0 ? row[i] : -infinity;
}

void softmax_row(float* row, std::int64_t n, float sink) {
  static const Softmax chosen = choose();
  chosen(row, n, sink);
}

}  // namespace onepass::cli
