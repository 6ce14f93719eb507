// Online softmax of a tile's rows (Milakov & Gimelshein 2018), in log2 units:
//   m' = max(m, c max S),  alpha = 2^(m - m'),  P = 2^(c S - m'),  l' = alpha l + sum P
// where c = |scale| log2(e). l stays one sum per lane until the row is finished.

/// From the tile's maxima of 6 rows to the new m, what the exponents subtract, and alpha; each
/// array holds group_stride numbers.
template <class F>
void rescale(typename F::real weight_log2, const typename F::real* tile_max,
             typename F::real* max_log2, typename F::real* used_max_log2, typename F::real* alpha) {
  const typename F::vec c = F::set1(weight_log2);
  for (int r = 0; r < group_rows; r += F::lanes) {
    const typename F::vec before = F::load(max_log2 + r);
    const typename F::vec now = F::max(F::load(tile_max + r) * c, before);
    // A row that has seen no key yet subtracts 0: its scores are -inf and stay so.
    const typename F::vec used = now == F::set1(-F::infinity) ? typename F::vec{} : now;
    F::store(max_log2 + r, now);
    F::store(used_max_log2 + r, used);
    F::store(alpha + r, F::exp2(before - used));
  }
}

/// Scores of one row, columns [begin, end) (multiples of 2 * lanes), to weights in place; row_sum
/// is the row's vector of sums.
template <class F>
void weigh_row(typename F::real* s, std::int64_t begin, std::int64_t end,
               typename F::real weight_log2, typename F::real used_max_log2, typename F::real alpha,
               typename F::real* row_sum) {
  constexpr int lanes = F::lanes;
  const typename F::vec c = F::set1(weight_log2), minus_max = F::set1(-used_max_log2);
  typename F::vec sum0{}, sum1{};
#pragma GCC unroll 2
  for (std::int64_t j = begin; j < end; j += 2 * lanes) {
    const typename F::vec p0 = F::weight_exp2(F::fma(F::load(s + j), c, minus_max));
    const typename F::vec p1 = F::weight_exp2(F::fma(F::load(s + j + lanes), c, minus_max));
    sum0 += p0;
    sum1 += p1;
    F::store_weights(s, j, p0, p1);
  }
  F::store(row_sum, F::fma(F::load(row_sum), F::set1(alpha), sum0 + sum1));
}
