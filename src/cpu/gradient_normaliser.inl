// The normalisers of one query tile once more, from its logits, tile of keys by tile of keys:
//   S = Q K^T  ->  score, mask;   dP = dO V^T
//   m' = max(m, max S),  l' = l e^(m - m') + sum e^(S - m'),  and the same for sum e^(S - m') dP
// For rows whose lse is large, and where o, rounded to 16 bits or made of such weights, gives a
// delta that is off by more than sums over many pairs forgive.

template <class F>
void GradientStep<F>::normalise() {
  find_columns();
  if (!columns_.any()) return;
  from_ = columns_.begin / lanes * lanes;
  stop_ = (columns_.end + lanes - 1) / lanes * lanes;
  for (int kg = from_ / group_keys; kg * group_keys < stop_; ++kg) products(kg);
  if (tile_.score_) apply_score();
  hide();
  for (int r = 0; r < count_; ++r) add_to_sums(r);
}

/// S and dP of one row into its sums; hidden and dropped pairs are selected away.
template <class F>
void GradientStep<F>::add_to_sums(int r) {
  const vec factor = F::set1(tile_.score_ ? real{1} : real(call_.logit_factor));
  const vec log2_e = F::set1(real(log2_of_e)), nothing = F::set1(-F::infinity);
  const vec kept_factor = F::set1(real(call_.kept_factor));
  std::uint8_t keep[max_tile_keys];
  if (call_.forward.dropout) tile_.kept_columns(first_ + r, from_, stop_, keep);
  const real *s = p_row(r), *dp = ds_row(r);
  const int keys = tile_.keys_;  // columns that pad the last vector are none
  vec most = nothing;
  for (int j = from_; j < stop_; j += lanes) {
    const vec logit = F::keep_lanes(F::load(s + j), 0, keys - j), scaled = logit * factor;
    most = F::max(logit == nothing ? nothing : scaled, most);
  }
  RowSums& row = tile_.sums_[first_ + r];
  row.raise(F::reduce_max(most));
  const vec m = F::set1(real(row.most));
  vec sum{}, product{}, size{};
  for (int j = from_; j < stop_; j += lanes) {
    const vec logit = F::keep_lanes(F::load(s + j), 0, keys - j), dp_of = F::load(dp + j);
    const auto hidden = logit == nothing;
    const vec weight = F::exp2((logit * factor - m) * log2_e);
    const vec p = hidden ? vec{} : weight;
    vec gradient = hidden ? vec{} : dp_of;
    if (call_.forward.dropout) {
      const auto is_kept = F::hide(vec{}, keep + j) == vec{};
      gradient = is_kept ? gradient * kept_factor : vec{};
    }
    sum += p;
    product = F::fma(p, gradient, product);
    size = F::fma(p, F::max(gradient, -gradient), size);
  }
  row.sum += F::reduce_add(sum);
  row.product += F::reduce_add(product);
  row.size += F::reduce_add(size);
}

template <class F>
void KeyTile<F>::normalise(std::int64_t key_begin, int keys, bool full) {
  load_keys(key_begin, keys);
  full_ = full;
  begin_expressions();
  classify();
  load_queries();
  for (int group = 0; group * group_rows < rows_; ++group) {
    GradientStep<F>(*this, group).normalise();
  }
}
