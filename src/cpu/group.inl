// The heart: one group of 6 query rows against one tile of keys, all scores in the first cache.
//   S = Q K^T  ->  score, mask  ->  m, alpha  ->  P = e^(c S - m)  ->  O = alpha O + P V
// Columns are keys counted from the tile's first one.

template <class F>
class QueryTile;

/// Columns [begin, end).
struct Run {
  int begin, end;
};

template <class F>
class GroupStep {
 public:
  using real = typename F::real;
  using unit = typename F::unit;
  using vec = typename F::vec;
  static constexpr int lanes = F::lanes;
  static constexpr int panel_keys = F::block_vecs * lanes;
  static constexpr int granule = 2 * lanes;  // columns of a step of the softmax

  GroupStep(QueryTile<F>& tile, int group, std::int64_t key_begin, int keys)
      : tile_(tile),
        call_(tile.call_),
        kinds_(tile.kinds_[group]),
        group_(group),
        first_(group * group_rows),
        keys_(keys),
        key_groups_((keys + group_keys - 1) / group_keys),
        stride_(tile.call_.sizes.tile_keys),
        key_begin_(key_begin) {}

  void run() {
    for (int r = 0; r < group_rows; ++r) F::store(row_max_ + r * lanes, F::set1(-F::infinity));
    if (!(tile_.bounded_ ? find_bounded_columns() : find_columns())) return;
    for (int kg = begin_ / group_keys; kg < key_groups_ && kg * group_keys < end_; ++kg) {
      scores(kg);
    }
    if (tile_.score_) apply_score();
    hide_and_find_max();
    real tile_max[group_stride] = {};
    for (int r = 0; r < group_rows; ++r) {
      tile_max[r] = F::reduce_max(F::load(row_max_ + r * lanes));
    }
    rescale<F>(real(call_.weight_scale), tile_max, tile_.row_max_ + group_ * group_stride,
               subtrahends_);
    if (tile_.isolate_) return output_isolated();
    for (int r = 0; r < group_rows; ++r) weigh(r);
    output();
  }

 private:
  /// Columns that row r sees where the mask is bounds; rows that pad the last group see none.
  Run bounded_run(int r) const;
  bool skipped(int kg) const { return kinds_[kg] == lang::TileKind::skip; }
  /// Some of its columns may be hidden: by the mask, or because they lie beyond the last key.
  bool ragged(int kg) const {
    return kinds_[kg] == lang::TileKind::partial || keys_ < (kg + 1) * group_keys;
  }
  real* s_row(int r) const { return tile_.s_ + r * stride_; }
  static int round_down(int column) { return column / granule * granule; }
  static int round_up(int column) { return round_down(column + granule - 1); }

  bool find_bounded_columns();
  bool find_columns();
  void look(int kg);
  bool any_visible(int kg, int* first, int* last) const;
  void scores(int kg);
  void apply_score();
  void hide_and_find_max();
  void weigh(int r, std::uint8_t* left_out = nullptr);
  void output();
  void output_isolated();

  QueryTile<F>& tile_;
  const ForwardCall& call_;
  lang::TileKind* kinds_;
  int group_, first_, keys_, key_groups_;
  std::int64_t stride_, key_begin_;
  int begin_ = 0, end_ = 0;  // columns that some row sees, exactly where the mask was looked at
  alignas(64) real row_max_[group_rows * lanes];
  Subtrahends<F> subtrahends_;
  Run runs_[group_rows];                                         // where the mask is bounds
  alignas(64) std::uint8_t visible_[group_rows][max_tile_keys];  // else, of ragged key groups
};

template <class F>
Run GroupStep<F>::bounded_run(int r) const {
  const lang::PairBounds& bounds = tile_.bounds_;
  const std::int64_t row = tile_.row_begin_ + first_ + r;
  if (first_ + r >= tile_.rows_ || row < bounds.row_lo || row > bounds.row_hi) return {0, 0};
  const std::int64_t low = row + bounds.diff_lo, high = row + bounds.diff_hi;
  const std::int64_t begin = (low > bounds.col_lo ? low : bounds.col_lo) - key_begin_;
  const std::int64_t end = (high < bounds.col_hi ? high : bounds.col_hi) + 1 - key_begin_;
  return {begin > 0 ? begin < keys_ ? int(begin) : keys_ : 0,
          end < keys_ ? end > 0 ? int(end) : 0 : keys_};
}

/// What find_columns() finds, where each row sees one run of columns: evaluates nothing.
template <class F>
bool GroupStep<F>::find_bounded_columns() {
  int full_begin = 0, full_end = keys_;  // columns that all rows see
  begin_ = keys_;
  end_ = 0;
  for (int r = 0; r < group_rows; ++r) {
    Run& run = runs_[r] = bounded_run(r);
    if (run.begin < run.end) {
      if (run.begin < begin_) begin_ = run.begin;
      if (run.end > end_) end_ = run.end;
    }
    if (first_ + r >= tile_.rows_) continue;
    if (run.begin > full_begin) full_begin = run.begin;
    if (run.end < full_end) full_end = run.end;
  }
  for (int kg = begin_ / group_keys; kg * group_keys < end_; ++kg) {
    const bool full = full_begin <= kg * group_keys && (kg + 1) * group_keys <= full_end;
    kinds_[kg] = full ? lang::TileKind::full : lang::TileKind::partial;
  }
  return begin_ < end_;
}

/// Which columns take part: looks at the mask where it is undecided, and trims both ends to the
/// first and last key that any row sees. False when there is none.
template <class F>
bool GroupStep<F>::find_columns() {
  int first_group = 0, last_group = key_groups_ - 1, first = 0, last = group_keys - 1, unused;
  for (; first_group < key_groups_; ++first_group) {
    if (skipped(first_group)) continue;
    first = 0;
    if (!ragged(first_group)) break;
    look(first_group);
    if (any_visible(first_group, &first, &unused)) break;
    kinds_[first_group] = lang::TileKind::skip;
  }
  if (first_group == key_groups_) return false;
  for (; last_group > first_group; --last_group) {
    if (skipped(last_group)) continue;
    last = group_keys - 1;
    if (!ragged(last_group)) break;
    look(last_group);
    if (any_visible(last_group, &unused, &last)) break;
    kinds_[last_group] = lang::TileKind::skip;
  }
  if (last_group == first_group) {
    last = group_keys - 1;
    if (ragged(first_group)) any_visible(first_group, &unused, &last);
  }
  for (int kg = first_group + 1; kg < last_group; ++kg) {
    if (!skipped(kg) && ragged(kg)) look(kg);
  }
  begin_ = first_group * group_keys + first;
  end_ = last_group * group_keys + last + 1;
  return true;
}

/// Fills visible_ for one ragged group of keys; rows that pad the last group see nothing.
template <class F>
void GroupStep<F>::look(int kg) {
  const int column = kg * group_keys;
  const int count = keys_ - column < group_keys ? keys_ - column : group_keys;
  for (int r = 0; r < group_rows; ++r) {
    std::uint8_t* visible = visible_[r] + column;
    const int row = first_ + r;
    if (row >= tile_.rows_) {
      __builtin_memset(visible, 0, group_keys);
      continue;
    }
    if (kinds_[kg] == lang::TileKind::partial) {
      tile_.mask_->mask_row(tile_.row_begin_ + row, column, count, visible);
    } else {
      __builtin_memset(visible, 1, group_keys);
    }
    if (count < group_keys) __builtin_memset(visible + count, 0, group_keys - count);
  }
}

/// First and last column of a ragged group that some row sees.
template <class F>
bool GroupStep<F>::any_visible(int kg, int* first, int* last) const {
  constexpr int words = group_keys / 8;
  std::uint64_t seen[words] = {};
  for (int r = 0; r < group_rows; ++r) {
    for (int w = 0; w < words; ++w) {
      std::uint64_t flags;
      __builtin_memcpy(&flags, visible_[r] + kg * group_keys + w * 8, sizeof flags);
      seen[w] |= flags;
    }
  }
  int low = 0, high = words - 1;
  while (low < words && seen[low] == 0) ++low;
  if (low == words) return false;
  while (seen[high] == 0) --high;
  *first = low * 8 + __builtin_ctzll(seen[low]) / 8;
  *last = high * 8 + 7 - __builtin_clzll(seen[high]) / 8;
  return true;
}

/// S = Q K^T for the columns of one group of keys that take part; -inf where all of it is hidden.
template <class F>
void GroupStep<F>::scores(int kg) {
  int from = kg * group_keys < begin_ ? round_down(begin_) : kg * group_keys;
  int stop = (kg + 1) * group_keys > end_ ? round_up(end_) : (kg + 1) * group_keys;
  if (skipped(kg)) {
    for (int r = 0; r < group_rows; ++r) {
      for (int j = from; j < stop; j += lanes) F::store(s_row(r) + j, F::set1(-F::infinity));
    }
    return;
  }
  const std::int64_t width = call_.sizes.d_units;
  const unit* q = tile_.q_ + first_ * width;
  real* row_max = tile_.score_ || ragged(kg) ? nullptr : row_max_;
  // Vectors without a visible key need no product: hiding writes them.
  if (from < begin_) from = begin_ / lanes * lanes;
  if (stop > end_) stop = (end_ + lanes - 1) / lanes * lanes;
  while (from < stop) {
    const int within = from % panel_keys;
    const int left = (stop - from) / lanes, room = F::block_vecs - within / lanes;
    const int vecs = left < room ? left : room;
    score_columns<F>(vecs, q, width, tile_.k_ + (key_begin_ + from - within) * width + within,
                     tile_.s_ + from, stride_, row_max);
    from += vecs * lanes;
  }
}

/// The score expression of the rows, on scaled logits, over runs of groups that are not skipped.
template <class F>
void GroupStep<F>::apply_score() {
  const vec scale = F::set1(real(call_.score_scale));
  for (int kg = begin_ / group_keys; kg * group_keys < end_;) {
    if (skipped(kg)) {
      ++kg;
      continue;
    }
    int after = kg + 1;
    while (after * group_keys < end_ && !skipped(after)) ++after;
    const int from = kg * group_keys < begin_ ? round_down(begin_) : kg * group_keys;
    const int stop = after * group_keys < end_ ? after * group_keys : round_up(end_);
    const int count = (stop < keys_ ? stop : keys_) - from;
    for (int r = 0; r < group_rows && first_ + r < tile_.rows_; ++r) {
      real* s = s_row(r) + from;
      for (int j = 0; j < stop - from; j += lanes) F::store(s + j, F::load(s + j) * scale);
      tile_.score_->score_row(tile_.row_begin_ + first_ + r, from, count, s);
    }
    kg = after;
  }
}

/// -inf for what the rows do not see, and the maximum over all that scores() left out of it.
template <class F>
void GroupStep<F>::hide_and_find_max() {
  for (int kg = begin_ / group_keys; kg * group_keys < end_; ++kg) {
    if (skipped(kg) || !(tile_.score_ || ragged(kg))) continue;
    const int from = kg * group_keys < begin_ ? round_down(begin_) : kg * group_keys;
    const int stop = (kg + 1) * group_keys > end_ ? round_up(end_) : (kg + 1) * group_keys;
    for (int r = 0; r < group_rows; ++r) {
      real* s = s_row(r);
      vec most = F::load(row_max_ + r * lanes);
      for (int j = from; j < stop; j += lanes) {
        vec x = F::load(s + j);
        if (ragged(kg)) {
          x = tile_.bounded_ ? F::keep_lanes(x, runs_[r].begin - j, runs_[r].end - j)
                             : F::hide(x, visible_[r] + j);
          F::store(s + j, x);
        }
        most = F::max(x, most);
      }
      F::store(row_max_ + r * lanes, most);
    }
  }
}

/// Scores of one row to weights in place; `left_out` (optional) learns which ones dropout takes.
template <class F>
void GroupStep<F>::weigh(int r, std::uint8_t* left_out) {
  const int from = round_down(begin_), stop = round_up(end_);
  real* sum = tile_.row_sum_ + (first_ + r) * lanes;
  const real alpha = subtrahends_.alpha[r];
  if (subtrahends_.large(r)) {
    weigh_row<F, true>(s_row(r), from, stop, real(call_.weight_scale), subtrahends_.natural[r],
                       alpha, sum);
  } else {
    weigh_row<F, false>(s_row(r), from, stop, real(call_.weight_scale * log2_of_e),
                        subtrahends_.log2[r], alpha, sum);
  }
  if (!call_.dropout) return;
  const Dropout& dropout = *call_.dropout;
  const int first_kept = from / group_keys * group_keys;
  const int count = (stop - first_kept + group_keys - 1) / group_keys * group_keys;
  std::uint8_t keep[max_tile_keys];
  keep_row(dropout_stream(dropout.seed, dropout.offset, tile_.b_, tile_.h_),
           dropout_threshold(dropout.p), dropout.row0 + tile_.row_begin_ + first_ + r,
           dropout.col0 + key_begin_ + first_kept, count, keep);
  drop_weights<F>(s_row(r), from, stop - from, keep + (from - first_kept));
  for (int j = from; left_out && j < stop; ++j) left_out[j] |= !keep[j - first_kept];
}

/// O = alpha O + P V over the columns that some row sees.
template <class F>
void GroupStep<F>::output() {
  const int from = begin_ / F::unit_elements * F::unit_elements;
  const int steps = (end_ - from + F::unit_elements - 1) / F::unit_elements;
  const auto* p = reinterpret_cast<const unit*>(tile_.s_) + from / F::unit_elements;
  output_rows<F>(
      p, stride_ * sizeof(real) / sizeof(unit), tile_.v_, (key_begin_ + from) / F::unit_elements,
      steps, tile_.o_ + first_ * call_.sizes.o_stride, call_.sizes.o_stride, subtrahends_.alpha);
}

/// The slow path for rows that came out not finite: the very sums of output(), in its order,
/// without the V rows of hidden and dropped keys (0 * NaN would be NaN), and scaled by a power of 2
/// so that no sum of finite values overflows.
template <class F>
void GroupStep<F>::output_isolated() {
  const std::int64_t columns = call_.sizes.o_stride;
  const int from = begin_ / F::unit_elements * F::unit_elements;
  for (int r = 0; r < group_rows; ++r) {
    std::uint8_t hidden[max_tile_keys];
    const int start = round_down(begin_), stop = round_up(end_);
    for (int j = start; j < stop; ++j) hidden[j] = s_row(r)[j] == -F::infinity;
    weigh(r, hidden);
    scale_weights<F>(s_row(r), start, stop - start, tile_.headroom_);
    const auto* p = reinterpret_cast<const unit*>(s_row(r));
    for (std::int64_t panel = 0; panel < columns;) {
      const std::int64_t panel_columns = panel_vecs<F>((columns - panel) / lanes) * lanes;
      std::int64_t v_stride;
      const unit* v =
          value_row(tile_.v_, key_begin_ / F::unit_elements, panel, panel_columns, &v_stride);
      for (std::int64_t c = 0; c < panel_columns; c += lanes) {
        real* o = tile_.o_ + (first_ + r) * columns + panel + c;
        vec sum = F::load(o) * F::set1(subtrahends_.alpha[r]);
        for (int j = from; j < end_; j += F::unit_elements) {
          if (hidden[j] && hidden[j + F::unit_elements - 1]) continue;
          const int step = j / F::unit_elements;
          sum = F::dot(F::broadcast(p + step), F::load_visible(v + step * v_stride + c, hidden + j),
                       sum);
        }
        F::store(o, sum);
      }
      panel += panel_columns;
    }
  }
}
