// Six query rows against one tile of keys, all of it in the first cache:
//   S = Q K^T  ->  score, mask  ->  P = e^(S - lse);   dP = dO V^T
//   dS = P (dP - delta) dscore/ds;   dQ += dS K
// P and dS of the whole query tile wait for dV and dK (gradient_tile.inl).

template <class F>
class KeyTile;

template <class F>
class GradientStep {
 public:
  using real = typename F::real;
  using vec = typename F::vec;
  static constexpr int lanes = F::lanes;
  static constexpr int panel_keys = F::block_vecs * lanes;

  GradientStep(KeyTile<F>& tile, int group)
      : tile_(tile), call_(tile.call_), first_(group * group_rows) {
    const int left = tile.rows_ - first_;
    count_ = left < group_rows ? left : group_rows;
  }

  /// The columns that some row sees.
  Run run();
  /// Adds to the rows' sums and nothing else (gradient_normaliser.inl).
  void normalise();

 private:
  real* p_row(int r) const { return tile_.p_ + (first_ + r) * call_.sizes.p_stride; }
  real* ds_row(int r) const { return tile_.ds_ + (first_ + r) * call_.sizes.p_stride; }
  real* score_ds_row(int r) const { return tile_.score_ds_rows_ + r * call_.sizes.tile_keys; }
  real* slope_row(int r) const { return tile_.slope_rows_ + r * call_.sizes.tile_keys; }

  void find_columns();
  void products(int kg);
  void apply_score();
  void hide();
  template <bool split>
  void weigh(int r);
  void add_to_sums(int r);
  void note_left_out(int r, const std::uint8_t* keep);
  void clear_rest();
  void add_to_dq();
  void add_to_arrays();

  KeyTile<F>& tile_;
  const BackwardCall& call_;
  int first_, count_;
  int from_ = 0, stop_ = 0;  // columns in whole vectors
  Columns<F> columns_;
};

template <class F>
Run GradientStep<F>::run() {
  find_columns();
  if (columns_.any()) {
    from_ = columns_.begin / lanes * lanes;
    stop_ = (columns_.end + lanes - 1) / lanes * lanes;
    for (int kg = from_ / group_keys; kg * group_keys < stop_; ++kg) products(kg);
    if (tile_.score_) apply_score();
    hide();
    for (int r = 0; r < group_rows; ++r) {
      const bool split = (r < count_) && tile_.log2_sum_[first_ + r] >= 0;
      split ? weigh<true>(r) : weigh<false>(r);
    }
    if (tile_.readers_) add_to_arrays();
  }
  clear_rest();
  if (columns_.any() && tile_.dq_) add_to_dq();
  return columns_.any() ? Run{columns_.begin, columns_.end} : Run{0, 0};
}

template <class F>
void GradientStep<F>::find_columns() {
  const SixRows at{tile_.row_begin_ + first_, count_, tile_.key_begin_, tile_.keys_};
  if (tile_.full_) {
    columns_.show_all(tile_.keys_);
  } else if (tile_.bounded_) {
    columns_.find(at, tile_.bounds_);
  } else {
    columns_.find(at, tile_.kinds_[first_ / group_rows], *tile_.mask_);
  }
}

/// S = Q K^T into the rows of P and dP = dO V^T into those of dS, for one group of keys.
template <class F>
void GradientStep<F>::products(int kg) {
  if (columns_.skipped(kg)) return;
  const BackwardSizes& sizes = call_.sizes;
  const std::int64_t d = call_.forward.d, d_v = call_.forward.d_v;
  const LeftRows<real> q{tile_.q_ + first_ * sizes.d_stride, sizes.d_stride, 1};
  const LeftRows<real> dout{tile_.dout_ + first_ * sizes.dv_stride, sizes.dv_stride, 1};
  int from = kg * group_keys < from_ ? from_ : kg * group_keys;
  const int stop = (kg + 1) * group_keys > stop_ ? stop_ : (kg + 1) * group_keys;
  while (from < stop) {
    const int within = from % panel_keys;
    const int left = (stop - from) / lanes, room = F::block_vecs - within / lanes;
    const int vecs = left < room ? left : room;
    const std::int64_t panel = from - within;
    product<F, false>(vecs, q, tile_.k_panels_ + panel * d + within, panel_keys, d, p_row(0) + from,
                      sizes.p_stride);
    product<F, false>(vecs, dout, tile_.v_panels_ + panel * d_v + within, panel_keys, d_v,
                      ds_row(0) + from, sizes.p_stride);
    from += vecs * lanes;
  }
}

/// The score expression and its slope, on scaled logits, over runs of groups that are not skipped.
template <class F>
void GradientStep<F>::apply_score() {
  const vec factor = F::set1(real(call_.logit_factor));
  for (int kg = from_ / group_keys; kg * group_keys < stop_;) {
    if (columns_.skipped(kg)) {
      ++kg;
      continue;
    }
    int after = kg + 1;
    while (after * group_keys < stop_ && !columns_.skipped(after)) ++after;
    const int from = kg * group_keys < from_ ? from_ : kg * group_keys;
    const int stop = after * group_keys < stop_ ? after * group_keys : stop_;
    const int count = (stop < tile_.keys_ ? stop : tile_.keys_) - from;
    for (int r = 0; r < count_; ++r) {
      real* s = p_row(r) + from;
      for (int j = 0; j < stop - from; j += lanes) F::store(s + j, F::load(s + j) * factor);
      const std::int64_t row = tile_.row_begin_ + first_ + r;
      if (tile_.slope_) tile_.slope_->value_row(row, from, count, s, slope_row(r) + from);
      for (ArrayReader<F>* reader = tile_.readers_; reader; reader = reader->next) {
        reader->factor.value_row(row, from, count, s,
                                 reader->factors + r * call_.sizes.tile_keys + from);
      }
      tile_.score_->score_row(row, from, count, s);
    }
    kg = after;
  }
}

/// -inf for what the rows do not see.
template <class F>
void GradientStep<F>::hide() {
  for (int kg = from_ / group_keys; kg * group_keys < stop_; ++kg) {
    const bool skipped = columns_.skipped(kg);
    if (!skipped && !columns_.ragged(kg)) continue;
    const int from = kg * group_keys < from_ ? from_ : kg * group_keys;
    const int stop = (kg + 1) * group_keys > stop_ ? stop_ : (kg + 1) * group_keys;
    for (int r = 0; r < group_rows; ++r) {
      real* s = p_row(r);
      for (int j = from; j < stop; j += lanes) {
        F::store(s + j, skipped ? F::set1(-F::infinity) : columns_.hide(F::load(s + j), r, j));
      }
    }
  }
}

/// S and dP of one row to P (less what dropout dropped) and dS in place. Hidden pairs, whose S is
/// -inf, are selected away: nothing of theirs is multiplied by 0. S - lse stays at or below 0
/// where a large lse was rounded down; where the normaliser is split, lse is the largest S itself.
template <class F>
template <bool split>
void GradientStep<F>::weigh(int r) {
  const bool real_row = r < count_;
  const vec lse = F::set1(real_row ? tile_.lse_[first_ + r] : F::infinity);
  const vec delta = F::set1(real_row ? tile_.delta_[first_ + r] : real{0});
  const vec factor = F::set1(tile_.score_ ? real{1} : real(call_.logit_factor));
  const vec log2_e = F::set1(real(log2_of_e));
  const vec log2_sum = F::set1(split ? tile_.log2_sum_[first_ + r] : real{0});
  const vec kept_factor = F::set1(real(call_.kept_factor));
  std::uint8_t keep[max_tile_keys];
  if (call_.forward.dropout) tile_.kept_columns(first_ + r, from_, stop_, keep);
  real *s = p_row(r), *dp = ds_row(r);
  if (tile_.isolate_) note_left_out(r, call_.forward.dropout ? keep : nullptr);
  for (int j = from_; j < stop_; j += lanes) {
    const vec logit = F::load(s + j);
    const auto hidden = logit == F::set1(-F::infinity);
    const vec x = split ? logit * factor - lse : F::fma(logit, factor, -lse);
    const vec below = x > vec{} ? vec{} : x;
    const vec weight = F::exp2(split ? F::fma(below, log2_e, -log2_sum) : below * log2_e);
    const vec p = hidden ? vec{} : weight;
    vec kept = p, gradient = F::load(dp + j);
    if (call_.forward.dropout) {
      const auto is_kept = F::hide(vec{}, keep + j) == vec{};
      kept = is_kept ? p : vec{};
      gradient = is_kept ? gradient * kept_factor : vec{};
    }
    vec ds = p * (gradient - delta);
    ds = hidden ? vec{} : ds;
    if (tile_.readers_) F::store(score_ds_row(r) + j, ds);
    if (tile_.score_) {
      const auto nothing = ds == vec{};
      ds = nothing ? vec{} : ds * F::load(slope_row(r) + j);
    }
    F::store(s + j, kept);
    F::store(dp + j, ds);
  }
}

/// Flags of the pairs that take no part: 1 = hidden, 2 = dropped. S is still in the row.
template <class F>
void GradientStep<F>::note_left_out(int r, const std::uint8_t* keep) {
  std::uint8_t* flags = tile_.left_out_ + (first_ + r) * call_.sizes.p_stride;
  for (int j = 0; j < call_.sizes.p_stride; ++j) flags[j] = 1;
  for (int j = from_; j < stop_; ++j) {
    flags[j] = (p_row(r)[j] == -F::infinity ? 1 : 0) | (keep && !keep[j] ? 2 : 0);
  }
}

/// Zeros where no row of the six looked, for the products that sum over the rows of the tile.
template <class F>
void GradientStep<F>::clear_rest() {
  const int stop = (tile_.keys_ + group_rows - 1) / group_rows * group_rows;
  for (int r = 0; r < group_rows; ++r) {
    real *p = p_row(r), *ds = ds_row(r);
    for (int j = 0; j < from_; j += lanes) F::store(p + j, vec{}), F::store(ds + j, vec{});
    for (int j = stop_; j < stop; j += lanes) F::store(p + j, vec{}), F::store(ds + j, vec{});
    if (tile_.isolate_ && !columns_.any()) {
      __builtin_memset(tile_.left_out_ + (first_ + r) * call_.sizes.p_stride, 1,
                       call_.sizes.p_stride);
    }
  }
}

/// dQ += dS K over the columns that some row sees.
template <class F>
void GradientStep<F>::add_to_dq() {
  const BackwardSizes& sizes = call_.sizes;
  const LeftRows<real> ds{ds_row(0) + columns_.begin, sizes.p_stride, 1};
  const real* k = tile_.k_ + columns_.begin * sizes.d_stride;
  const int steps = columns_.end - columns_.begin;
  real* dq = tile_.dq_ + first_ * sizes.d_stride;
  if (!tile_.isolate_) return add_product<F>(ds, k, steps, dq, sizes.d_stride);
  const LeftOut hidden{tile_.left_out_ + first_ * sizes.p_stride + columns_.begin, sizes.p_stride,
                       1, 1};
  add_isolated<F>(ds, hidden, k, steps, dq, sizes.d_stride);
}

template <class F>
void GradientStep<F>::add_to_arrays() {
  const int stop = stop_ < tile_.keys_ ? stop_ : tile_.keys_;
  for (ArrayReader<F>* reader = tile_.readers_; reader; reader = reader->next) {
    for (int r = 0; r < count_; ++r) {
      reader->add_row(tile_.row_begin_ + first_ + r, from_, stop - from_, score_ds_row(r) + from_,
                      reader->factors + r * call_.sizes.tile_keys + from_);
    }
  }
}
