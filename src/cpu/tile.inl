// One query tile of one (sequence, query head), from scores to output:
//   for each tile of keys:  S = Q K^T  ->  P, alpha  ->  O = alpha O + P V;   then o = O / l

template <class F>
class QueryTile {
 public:
  using real = typename F::real;
  using unit = typename F::unit;
  using vec = typename F::vec;
  static constexpr int lanes = F::lanes;
  static constexpr int panel_keys = F::block_vecs * lanes;

  QueryTile(const ForwardCall& call, std::int64_t item, int thread);

  /// The classifier and the evaluators are null where the call has no such expression.
  void run(const lang::Classifier* classifier, Evaluator<float>* mask, Evaluator<real>* score);

  std::int64_t b() const { return b_; }
  std::int64_t h() const { return h_; }
  std::int64_t query_head() const { return query_head_; }

 private:
  int padded_rows() const { return groups_ * group_rows; }
  real sink() const;

  void load_queries();
  void start_rows();
  void walk();
  static void visit(void* tile, std::int64_t key_begin, std::int64_t key_end, bool full) {
    static_cast<QueryTile*>(tile)->step(key_begin, static_cast<int>(key_end - key_begin), full);
  }
  void step(std::int64_t key_begin, int keys, bool full);
  void classify(std::int64_t key_begin, int keys, bool full);
  void scores(std::int64_t key_begin, int keys);
  void edit_row(int row, int keys);
  bool edited(int group, int key_group, int keys) const;
  void weigh(int row, std::int64_t key_begin, int begin, int end);
  void accumulate(int group, std::int64_t key_begin, int keys);
  void output_isolated(int group, std::int64_t key_begin, int begin, int end);
  std::uint64_t finish();
  void store_lse(int row, real sum);

  const ForwardCall& call_;
  const lang::Classifier* classifier_ = nullptr;
  Evaluator<float>* mask_ = nullptr;
  Evaluator<real>* score_ = nullptr;
  std::int64_t b_ = 0, h_ = 0, h_kv_ = 0, query_head_ = 0, row_begin_ = 0;
  int rows_ = 0, groups_ = 0;
  bool isolate_ = false;  // hidden keys' V takes no part, be it NaN
  real first_log2_ = 0;
  const unit* k_ = nullptr;
  Values<unit> v_;
  unit* q_ = nullptr;
  real *s_ = nullptr, *o_ = nullptr, *row_max_ = nullptr, *row_sum_ = nullptr;
  real *tile_max_ = nullptr, *max_log2_ = nullptr, *used_max_log2_ = nullptr, *alpha_ = nullptr;
  lang::TileKind kinds_[max_tile_rows / group_rows][max_key_groups];  // of the tile at hand
};

template <class F>
QueryTile<F>::QueryTile(const ForwardCall& call, std::int64_t item, int thread) : call_(call) {
  const ForwardSizes& sizes = call.sizes;
  // Late rows first: under a causal mask they are the long ones.
  const std::int64_t tile = sizes.row_tiles - 1 - item % sizes.row_tiles;
  query_head_ = item / sizes.row_tiles;
  const std::int64_t slot = query_head_ / call.group;
  const std::int64_t head = call.first_head + slot;
  b_ = head / call.h_kv;
  h_kv_ = head % call.h_kv;
  h_ = h_kv_ * call.group + query_head_ % call.group;
  row_begin_ = tile * sizes.tile_rows;
  const std::int64_t left = call.s_q - row_begin_;
  rows_ = static_cast<int>(left < sizes.tile_rows ? left : sizes.tile_rows);
  groups_ = (rows_ + group_rows - 1) / group_rows;
  k_ = reinterpret_cast<const unit*>(call.workspace + slot * sizes.packed_k_bytes);
  if (sizes.v_in_place) {
    v_ = {reinterpret_cast<const unit*>(address(call.v, b_, 0, h_kv_)), 0, call.v.s};
  } else {
    v_ = {reinterpret_cast<const unit*>(call.workspace + sizes.v_offset +
                                        slot * sizes.packed_v_bytes),
          sizes.key_groups * group_keys / F::unit_elements, 0};
  }
  std::byte* scratch = call.workspace + sizes.scratch_offset + thread * sizes.scratch.bytes;
  const ScratchMap& map = sizes.scratch;
  q_ = reinterpret_cast<unit*>(scratch + map.q);
  s_ = reinterpret_cast<real*>(scratch + map.s);
  o_ = reinterpret_cast<real*>(scratch + map.o);
  row_max_ = reinterpret_cast<real*>(scratch + map.row_max);
  row_sum_ = reinterpret_cast<real*>(scratch + map.row_sum);
  tile_max_ = reinterpret_cast<real*>(scratch + map.tile_max);
  max_log2_ = reinterpret_cast<real*>(scratch + map.max_log2);
  used_max_log2_ = reinterpret_cast<real*>(scratch + map.used_max_log2);
  alpha_ = reinterpret_cast<real*>(scratch + map.alpha);
}

template <class F>
void QueryTile<F>::run(const lang::Classifier* classifier, Evaluator<float>* mask,
                       Evaluator<real>* score) {
  classifier_ = classifier;
  mask_ = mask;
  score_ = score;
  walk();
  std::uint64_t bad = finish();
  if (!mask_ && !score_) return;
  // A row that is not finite may have got it from keys that it does not see: its group once more,
  // the same sums in the same order, without them.
  isolate_ = true;
  const std::int64_t tile_begin = row_begin_, tile_end = row_begin_ + rows_;
  for (int group = 0; bad != 0; ++group, bad >>= 1) {
    if (!(bad & 1U)) continue;
    row_begin_ = tile_begin + group * group_rows;
    rows_ =
        static_cast<int>(tile_end - row_begin_ < group_rows ? tile_end - row_begin_ : group_rows);
    groups_ = 1;
    walk();
    finish();
  }
}

template <class F>
void QueryTile<F>::walk() {
  load_queries();
  start_rows();
  walk_keys(classifier_, {row_begin_, row_begin_ + rows_}, call_.s_kv, call_.sizes.tile_keys, this,
            visit);
}

template <class F>
void QueryTile<F>::load_queries() {
  const std::int64_t width = call_.sizes.d_units;
  for (int r = 0; r < padded_rows(); ++r) {
    const std::int64_t count = r < rows_ ? call_.d : 0;
    unit_row<F>(count ? address(call_.q, b_, row_begin_ + r, h_) : nullptr, call_.q.dtype,
                call_.q.d, count, call_.q_factor, q_ + r * width, width);
  }
}

template <class F>
typename F::real QueryTile<F>::sink() const {
  real value;
  __builtin_memcpy(&value, address(call_.sink, 0, 0, h_), sizeof value);
  return value;
}

/// The sink, where there is one, is a first key of weight 1 and value 0.
template <class F>
void QueryTile<F>::start_rows() {
  first_log2_ = -F::infinity;
  if (call_.sink.data) first_log2_ = sink() * real(1.4426950408889634074);
  const bool counts = !(first_log2_ == -F::infinity);
  for (int r = 0; r < padded_rows(); ++r) {
    max_log2_[r] = first_log2_;
    used_max_log2_[r] = counts ? first_log2_ : real{0};
    F::store(row_sum_ + r * lanes, vec{});
    row_sum_[r * lanes] = counts ? real{1} : real{0};
  }
  const std::int64_t count = padded_rows() * call_.sizes.o_stride;
  for (std::int64_t i = 0; i < count; i += lanes) F::store(o_ + i, vec{});
}

template <class F>
void QueryTile<F>::step(std::int64_t key_begin, int keys, bool full) {
  classify(key_begin, keys, full);
  for (int r = 0; r < padded_rows(); ++r) F::store(row_max_ + r * lanes, F::set1(-F::infinity));
  scores(key_begin, keys);
  if (!full && mask_) mask_->begin_keys(key_begin, keys);
  if (score_) score_->begin_keys(key_begin, keys);
  if (score_ || !full || keys % group_keys != 0) {
    for (int r = 0; r < rows_; ++r) edit_row(r, keys);
  }
  for (int r = 0; r < padded_rows(); ++r) {
    tile_max_[r] = F::reduce_max(F::load(row_max_ + r * lanes));
  }
  rescale<F>(padded_rows(), real(call_.weight_log2), tile_max_, max_log2_, used_max_log2_, alpha_);
  for (int g = 0; g < groups_; ++g) accumulate(g, key_begin, keys);
}

template <class F>
void QueryTile<F>::classify(std::int64_t key_begin, int keys, bool full) {
  if (!full) {
    return classify_groups(*classifier_, {row_begin_, row_begin_ + rows_}, key_begin,
                           key_begin + keys, kinds_);
  }
  for (int g = 0; g < groups_; ++g) {
    for (int kg = 0; kg < max_key_groups; ++kg) kinds_[g][kg] = lang::TileKind::full;
  }
}

/// The scores of this group need more than the product: an expression, or keys beyond the last.
template <class F>
bool QueryTile<F>::edited(int group, int key_group, int keys) const {
  return score_ || kinds_[group][key_group] == lang::TileKind::partial ||
         keys < (key_group + 1) * group_keys;
}

/// S = Q K^T, panel by panel, for the groups that are not skipped.
template <class F>
void QueryTile<F>::scores(std::int64_t key_begin, int keys) {
  const std::int64_t stride = call_.sizes.tile_keys, width = call_.sizes.d_units;
  for (int column = 0; column < keys; column += panel_keys) {
    const int kg = column / group_keys;
    const unit* k = k_ + (key_begin + column) * width;
    for (int g = 0; g < groups_; ++g) {
      if (kinds_[g][kg] == lang::TileKind::skip) continue;
      const int row = g * group_rows;
      score_block<F>(q_ + row * width, width, k, s_ + row * stride + column, stride,
                     edited(g, kg, keys) ? nullptr : row_max_ + row * lanes);
    }
  }
}

/// One row's score expression, then its mask, then the maximum over what was edited.
template <class F>
void QueryTile<F>::edit_row(int row, int keys) {
  const int group = row / group_rows;
  real* s = s_ + row * std::int64_t{call_.sizes.tile_keys};
  const int key_groups = (keys + group_keys - 1) / group_keys;
  vec most = F::load(row_max_ + row * lanes);
  for (int kg = 0; kg < key_groups;) {
    const lang::TileKind kind = kinds_[group][kg];
    if (kind == lang::TileKind::skip || !edited(group, kg, keys)) {
      ++kg;
      continue;
    }
    // A run of groups alike, so that the evaluators see long rows.
    int end = kg + 1;
    while (end < key_groups && kinds_[group][end] == kind && edited(group, end, keys)) ++end;
    const int column = kg * group_keys, stop = end * group_keys;
    const int count = (stop < keys ? stop : keys) - column;
    if (score_) {
      const vec scale = F::set1(real(call_.score_scale));
      for (int j = column; j < stop; j += lanes) F::store(s + j, F::load(s + j) * scale);
      score_->score_row(row_begin_ + row, column, count, s + column);
    }
    std::uint8_t visible[max_tile_keys];
    if (kind == lang::TileKind::partial) {
      mask_->mask_row(row_begin_ + row, column, count, visible);
    } else {
      __builtin_memset(visible, 1, count);
    }
    __builtin_memset(visible + count, 0, stop - column - count);
    for (int j = column; j < stop; j += lanes) {
      const vec seen = F::hide(F::load(s + j), visible + (j - column));
      F::store(s + j, seen);
      most = F::max(seen, most);
    }
    kg = end;
  }
  F::store(row_max_ + row * lanes, most);
}

/// Scores of one row to weights in place, columns [begin, end) of the tile (multiples of 64).
template <class F>
void QueryTile<F>::weigh(int row, std::int64_t key_begin, int begin, int end) {
  real* s = s_ + row * std::int64_t{call_.sizes.tile_keys};
  weigh_row<F>(s, begin, end, real(call_.weight_log2), used_max_log2_[row], alpha_[row],
               row_sum_ + row * lanes);
  if (!call_.dropout) return;
  const Dropout& dropout = *call_.dropout;
  std::uint8_t keep[max_tile_keys];
  keep_row(dropout_stream(dropout.seed, dropout.offset, b_, h_), dropout_threshold(dropout.p),
           dropout.row0 + row_begin_ + row, dropout.col0 + key_begin + begin, end - begin, keep);
  drop_weights<F>(s, begin, end - begin, keep);
}

/// Softmax of the 6 rows of one group over the keys they may see, then O = alpha O + P V.
template <class F>
void QueryTile<F>::accumulate(int group, std::int64_t key_begin, int keys) {
  const std::int64_t stride = call_.sizes.tile_keys;
  const int first = group * group_rows;
  int begin = 0, end = (keys + group_keys - 1) / group_keys;
  while (begin < end && kinds_[group][begin] == lang::TileKind::skip) ++begin;
  while (begin < end && kinds_[group][end - 1] == lang::TileKind::skip) --end;
  if (begin == end) return;
  for (int kg = begin; kg < end; ++kg) {
    if (kinds_[group][kg] != lang::TileKind::skip) continue;
    for (int r = first; r < first + group_rows; ++r) {
      real* s = s_ + r * stride + kg * group_keys;
      for (int j = 0; j < group_keys; j += lanes) F::store(s + j, F::set1(-F::infinity));
    }
  }
  const int column = begin * group_keys;
  const int stop = end * group_keys < keys ? end * group_keys : keys;
  if (isolate_) return output_isolated(group, key_begin, column, stop);
  for (int r = first; r < first + group_rows; ++r) weigh(r, key_begin, column, end * group_keys);
  const auto* p = reinterpret_cast<const unit*>(s_ + first * stride);
  const int steps = (stop - column + F::unit_elements - 1) / F::unit_elements;
  output_rows<F>(p + column / F::unit_elements, stride * sizeof(real) / sizeof(unit), v_,
                 (key_begin + column) / F::unit_elements, steps, o_ + first * call_.sizes.o_stride,
                 call_.sizes.o_stride, alpha_ + first);
}

/// o = O / l and lse of every row. Returns the groups with a row that is not finite, as a bit set.
template <class F>
std::uint64_t QueryTile<F>::finish() {
  const std::int64_t columns = call_.sizes.o_stride;
  const real kept = call_.dropout ? real(1.0 - call_.dropout->p) : real{1};
  std::uint64_t bad = 0;
  for (int r = 0; r < rows_; ++r) {
    const real sum = F::reduce_add(F::load(row_sum_ + r * lanes));
    real* o = o_ + r * columns;
    const vec divisor = F::set1(sum == real{0} ? real{1} : sum * kept);
    vec vote{};  // x * 0 is NaN for infinities and NaN
    for (std::int64_t c = 0; c < columns; c += lanes) {
      const vec x = F::load(o + c) / divisor;
      vote = F::fma(x, vec{}, vote);
      F::store(o + c, x);
    }
    if (!(F::reduce_add(vote) == real{0})) bad |= std::uint64_t{1} << (r / group_rows);
    output_row(o, call_.d_v, address(call_.o, b_, row_begin_ + r, h_), call_.o.dtype, call_.o.d);
    if (call_.lse.data) store_lse(r, sum);
  }
  return bad;
}

template <class F>
void QueryTile<F>::store_lse(int row, real sum) {
  constexpr double ln_2 = 0.69314718055994530942;
  real lse = real((double(used_max_log2_[row]) + __builtin_log2(double(sum))) * ln_2);
  // Nothing but the sink was seen: its very value, not its round trip through log2.
  if (call_.sink.data && sum == real{1} && used_max_log2_[row] == first_log2_) lse = sink();
  __builtin_memcpy(address(call_.lse, b_, row_begin_ + row, h_), &lse, sizeof lse);
}
