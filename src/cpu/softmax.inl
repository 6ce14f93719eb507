// Online softmax of a tile's rows (Milakov & Gimelshein 2018):
//   m' = max(m, c max S),  alpha = e^(m - m'),  P = e^(c S - m'),  l' = alpha l + sum P
// where c = |scale|, and m is the largest logit so far. l stays one sum per lane until the row is
// finished. Exponents are taken in log2 units: one fma of S with c log2(e) and the rounded
// m log2(e). That rounding moves every weight of the row alike, so it leaves o untouched and lse
// knows of it; but its size grows with m, so that large m are subtracted before log2(e) multiplies
// (all m, where a multiply-add rounds twice).
inline constexpr float large_logit = fused_multiply_add ? 65536 : 0;

/// What the exponents of a group's 6 rows subtract; each array holds group_stride numbers.
template <class F>
struct Subtrahends {
  alignas(64) typename F::real natural[group_stride];  // m, or 0 where no key was seen
  alignas(64) typename F::real log2[group_stride];     // the same times log2(e), rounded
  alignas(64) typename F::real alpha[group_stride];
  bool large(int r) const { return natural[r] > large_logit || natural[r] < -large_logit; }
};

/// What rounding takes from x log2(e) where that product is subtracted; large x lose nothing.
template <class F>
typename F::vec rounding(typename F::vec x) {
  const typename F::vec log2_e = F::set1(typename F::real(log2_of_e));
  const typename F::vec lost = F::fma(x, log2_e, -(x * log2_e));
  return F::max(x, -x) > F::set1(large_logit) ? typename F::vec{} : lost;
}

/// From the tile's maxima of raw scores to the new m and what follows from it.
template <class F>
void rescale(typename F::real scale, const typename F::real* tile_max, typename F::real* row_max,
             Subtrahends<F>& to) {
  using vec = typename F::vec;
  const vec c = F::set1(scale), log2_e = F::set1(typename F::real(log2_of_e));
  const vec limit = F::set1(large_logit);
  for (int r = 0; r < group_rows; r += F::lanes) {
    const vec before = F::load(row_max + r);
    const vec now = F::max(F::load(tile_max + r) * c, before);
    // A row that has seen no key yet subtracts 0: its scores are -inf and stay so.
    const vec used = now == F::set1(-F::infinity) ? vec{} : now;
    const vec used_log2 = used * log2_e;
    const vec small_step = before * log2_e - used_log2;
    const vec large_step = (before - used) * log2_e + (rounding<F>(used) - rounding<F>(before));
    vec step = F::max(F::max(used, -used), -before) > limit ? large_step : small_step;
    step = before == used ? vec{} : step;  // infinities too
    F::store(row_max + r, now);
    F::store(to.natural + r, used);
    F::store(to.log2 + r, used_log2);
    F::store(to.alpha + r, F::exp2(step));
  }
}

/// Scores of one row, columns [begin, end) (multiples of 2 * lanes), to weights in place:
/// e^(scale s - m). row_sum is the row's vector of sums.
template <class F, bool large>
void weigh_row(typename F::real* s, std::int64_t begin, std::int64_t end, typename F::real scale,
               typename F::real most, typename F::real alpha, typename F::real* row_sum) {
  using vec = typename F::vec;
  constexpr int lanes = F::lanes;
  // Large logits: e^((scale s) - m), else 2^(scale log2(e) s - m log2(e)), as the caller gives.
  const vec c = F::set1(scale), minus_max = F::set1(-most);
  const vec log2_e = F::set1(typename F::real(log2_of_e));
  const auto weight = [&](const typename F::real* from) {
    if constexpr (large) return F::weight_exp2((F::load(from) * c + minus_max) * log2_e);
    return F::weight_exp2(F::fma(F::load(from), c, minus_max));
  };
  vec sum0{}, sum1{};
#pragma GCC unroll 2
  for (std::int64_t j = begin; j < end; j += 2 * lanes) {
    const vec p0 = weight(s + j), p1 = weight(s + j + lanes);
    sum0 += p0;
    sum1 += p1;
    F::store_weights(s, j, p0, p1);
  }
  F::store(row_sum, F::fma(F::load(row_sum), F::set1(alpha), sum0 + sum1));
}

/// m with the rounding that its row's weights know of.
template <class F>
double used_max(typename F::real m) {
  const bool large = m > large_logit || m < -large_logit;
  return large ? double(m) : double(m * typename F::real(log2_of_e)) * ln_of_2;
}

/// ln of the row's sum: m with its rounding, and ln l.
template <class F>
typename F::real row_lse(typename F::real most, typename F::real sum) {
  return typename F::real(used_max<F>(most) + __builtin_log2(double(sum)) * ln_of_2);
}

/// Weights of a row times a power of 2, exactly but for the smallest. `first` and `count` in
/// columns; weights that go in pairs are 16-bit floats.
template <class F>
void scale_weights(typename F::real* row, int first, int count, typename F::real factor) {
  if constexpr (F::unit_elements == 2) {
    Brain* weights = reinterpret_cast<Brain*>(row) + first;
    for (int j = 0; j < count; ++j) narrow(widen(weights[j]) * factor, &weights[j]);
  } else {
    for (int j = 0; j < count; ++j) row[first + j] *= factor;
  }
}
