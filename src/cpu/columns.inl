// Which of a tile's keys 6 rows see. Columns are keys counted from the tile's first one.

/// Six rows from `row` on, of which `count` exist, and the tile's keys.
struct SixRows {
  std::int64_t row;
  int count;
  std::int64_t key_begin;
  int keys;
};

template <class F>
class Columns {
 public:
  using vec = typename F::vec;

  int begin = 0, end = 0;  // columns that some row sees
  bool any() const { return begin < end; }
  bool skipped(int kg) const { return kinds_[kg] == lang::TileKind::skip; }
  /// Some pair of this group of keys may be hidden.
  bool ragged(int kg) const { return kinds_[kg] == lang::TileKind::partial; }
  /// x where row r sees column j and those after it, else -inf; of ragged groups.
  vec hide(vec x, int r, int j) const {
    return bounded_ ? F::keep_lanes(x, first_[r] - j, last_[r] - j) : F::hide(x, visible_[r] + j);
  }

  void show_all(int keys);
  void find(const SixRows& at, const lang::PairBounds& bounds);
  /// `kinds` says of each group of keys what the classifier knows.
  void find(const SixRows& at, const lang::TileKind* kinds, Evaluator<float>& mask);

 private:
  void look(const SixRows& at, int kg, Evaluator<float>& mask);
  bool any_visible(int kg, int* low, int* high) const;

  bool bounded_ = false;
  lang::TileKind kinds_[max_key_groups];
  int first_[group_rows], last_[group_rows];                     // [first, last) where bounded
  alignas(64) std::uint8_t visible_[group_rows][max_tile_keys];  // else, of ragged groups
};

template <class F>
void Columns<F>::show_all(int keys) {
  begin = 0;
  end = keys;
  __builtin_memset(kinds_, static_cast<int>(lang::TileKind::full), sizeof kinds_);
}

/// Each row sees one run of columns: evaluates nothing.
template <class F>
void Columns<F>::find(const SixRows& at, const lang::PairBounds& bounds) {
  bounded_ = true;
  begin = at.keys;
  end = 0;
  int full_begin = 0, full_end = at.count < group_rows ? 0 : at.keys;  // that all rows see
  for (int r = 0; r < group_rows; ++r) {
    const std::int64_t row = at.row + r;
    const std::int64_t from = row + bounds.diff_lo, to = row + bounds.diff_hi;
    const std::int64_t low = (from > bounds.col_lo ? from : bounds.col_lo) - at.key_begin;
    const std::int64_t high = (to < bounds.col_hi ? to : bounds.col_hi) + 1 - at.key_begin;
    const bool seen = r < at.count && row >= bounds.row_lo && row <= bounds.row_hi && low < high &&
                      low < at.keys && high > 0;
    first_[r] = !seen || low < 0 ? 0 : int(low);
    last_[r] = !seen ? 0 : high < at.keys ? int(high) : at.keys;
    if (seen && first_[r] < begin) begin = first_[r];
    if (last_[r] > end) end = last_[r];
    if (first_[r] > full_begin) full_begin = first_[r];
    if (last_[r] < full_end) full_end = last_[r];
  }
  for (int kg = 0; kg < max_key_groups; ++kg) {
    const int column = kg * group_keys;
    const int stop = column + group_keys < at.keys ? column + group_keys : at.keys;
    const bool full = full_begin <= column && stop <= full_end;
    kinds_[kg] = full ? lang::TileKind::full : lang::TileKind::partial;
  }
}

/// Looks at the mask where it is undecided, and trims both ends to the first and last key seen.
template <class F>
void Columns<F>::find(const SixRows& at, const lang::TileKind* kinds, Evaluator<float>& mask) {
  begin = at.keys;
  end = 0;
  for (int kg = 0; kg * group_keys < at.keys; ++kg) {
    const int column = kg * group_keys;
    const int stop = column + group_keys < at.keys ? column + group_keys : at.keys;
    int low = column, high = stop;
    kinds_[kg] = kinds[kg];
    // Rows that pad the six see nothing.
    if (kinds[kg] == lang::TileKind::full && at.count < group_rows) {
      kinds_[kg] = lang::TileKind::partial;
      for (int r = 0; r < group_rows; ++r) {
        __builtin_memset(visible_[r] + column, r < at.count, group_keys);
      }
    } else if (ragged(kg)) {
      look(at, kg, mask);
      if (!any_visible(kg, &low, &high)) kinds_[kg] = lang::TileKind::skip;
    }
    if (skipped(kg)) continue;
    if (low < begin) begin = low;
    if (high > end) end = high;
  }
}

/// Fills visible_ for one group of keys.
template <class F>
void Columns<F>::look(const SixRows& at, int kg, Evaluator<float>& mask) {
  const int column = kg * group_keys;
  const int count = at.keys - column < group_keys ? at.keys - column : group_keys;
  for (int r = 0; r < group_rows; ++r) {
    std::uint8_t* visible = visible_[r] + column;
    const int shown = r < at.count ? count : 0;
    if (shown) mask.mask_row(at.row + r, column, shown, visible);
    __builtin_memset(visible + shown, 0, group_keys - shown);
  }
}

/// First column that some row sees, and the one after the last.
template <class F>
bool Columns<F>::any_visible(int kg, int* low, int* high) const {
  constexpr int words = group_keys / 8;
  std::uint64_t seen[words] = {};
  for (int r = 0; r < group_rows; ++r) {
    for (int w = 0; w < words; ++w) {
      std::uint64_t flags;
      __builtin_memcpy(&flags, visible_[r] + kg * group_keys + w * 8, sizeof flags);
      seen[w] |= flags;
    }
  }
  int first = 0, last = words - 1;
  while (first < words && seen[first] == 0) ++first;
  if (first == words) return false;
  while (seen[last] == 0) --last;
  *low = kg * group_keys + first * 8 + __builtin_ctzll(seen[first]) / 8;
  *high = kg * group_keys + last * 8 + 8 - __builtin_clzll(seen[last]) / 8;
  return true;
}
