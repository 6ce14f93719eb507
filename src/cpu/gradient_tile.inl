// One tile of keys of one (sequence, key/value head) against every query of its group:
//   for each query head, for each tile of queries:
//     P, dS and dQ += dS K, six rows at a time (gradient_step.inl)
//     dV += P^T dO,  dK += dS^T Q, six keys at a time
// dK and dV stay in the second cache until the tile is done.

/// Rows [first, first + count) of a head as reals [padded][stride], zeros where there is nothing.
/// False when some number is not finite.
template <class F>
bool load_rows(const Strided& tensor, std::int64_t b, std::int64_t h, std::int64_t first, int count,
               int padded, std::int64_t width, double factor, typename F::real* to,
               std::int64_t stride) {
  typename F::vec vote{};  // x * 0 is NaN for infinities and NaN
  for (int r = 0; r < padded; ++r, to += stride) {
    if (r + rows_ahead < count) {
      prefetch_row(address(tensor, b, first + r + rows_ahead, h), tensor, width);
    }
    unit_row<F>(r < count ? address(tensor, b, first + r, h) : nullptr, tensor.dtype, tensor.d,
                r < count ? width : 0, factor, to, stride);
    for (std::int64_t i = 0; i < stride; i += F::lanes) {
      vote = F::fma(F::load(to + i), typename F::vec{}, vote);
    }
  }
  return F::reduce_add(vote) == 0;
}

template <class F>
class KeyTile {
 public:
  using real = typename F::real;
  using vec = typename F::vec;
  static constexpr int lanes = F::lanes;
  static constexpr int panel_keys = F::block_vecs * lanes;

  /// For key range `range` of the wave's key/value head `slot`.
  KeyTile(const BackwardCall& call, std::int64_t slot, std::int64_t range, int thread);

  std::int64_t b() const { return b_; }
  const Sequence& at() const { return sequence_->at; }
  /// Query head of the sequence for member `member` of the group.
  std::int64_t head(std::int64_t member) const { return h_kv_ * call_.forward.group + member; }
  /// None of the head's query tiles has added to dq in this range.
  void clear_touched(std::int64_t member);

  /// K and V of a tile of keys; dK = dV = 0.
  void load_keys(std::int64_t key_begin, int keys);
  /// From here on add_head() takes the sums of these rows and nothing else.
  void want_sums(std::int64_t row_begin, int rows, RowSums* sums) {
    row_begin_ = row_begin, rows_ = rows, sums_ = sums;
  }
  bool wants_sums() const { return sums_; }
  /// Every query of one head of the group.
  void add_head(std::int64_t member, const lang::Classifier* classifier, Evaluator<float>* mask,
                Evaluator<real>* score, Evaluator<real>* slope, ArrayReader<F>* readers);
  /// Key range and head at hand, for array_sum.
  std::int64_t range() const { return range_; }
  std::int64_t key_value_head() const { return b_ * call_.forward.h_kv + h_kv_; }
  /// dk and dv of the tile.
  void store_gradients();

 private:
  friend class GradientStep<F>;

  static void visit(void* tile, std::int64_t row_begin, std::int64_t row_end, bool full) {
    static_cast<KeyTile*>(tile)->add_rows(row_begin, static_cast<int>(row_end - row_begin), full);
  }
  void choose_head(std::int64_t member) {
    h_ = head(member);
    first_tile_ =
        row_tiles_before(call_.forward, *sequence_, h_) - call_.forward.wave.first_row_tile;
  }
  static void visit_keys(void* tile, std::int64_t key_begin, std::int64_t key_end, bool full) {
    static_cast<KeyTile*>(tile)->normalise(key_begin, static_cast<int>(key_end - key_begin), full);
  }
  void begin_expressions();
  void classify();
  void add_rows(std::int64_t row_begin, int rows, bool full);
  void normalise(std::int64_t key_begin, int keys, bool full);
  void load_queries();
  void start_dq();
  void add_to_keys(const Run* seen, int groups);
  void pack_panels(const real* rows, std::int64_t stride, std::int64_t width, real* panels) const;
  void kept_columns(int row, int from, int stop, std::uint8_t* keep) const;

  const BackwardCall& call_;
  const SequenceWork* sequence_;
  std::int64_t range_, b_, h_kv_, h_ = 0;
  std::int64_t first_tile_ = 0;  // of the query head, among the wave's
  std::int64_t key_begin_ = 0, row_begin_ = 0;
  int keys_ = 0, rows_ = 0;
  bool keys_finite_ = true;
  bool isolate_ = false;  // pairs that take no part may hold NaN
  bool full_ = false, bounded_ = false;
  lang::PairBounds bounds_{};
  const lang::Classifier* classifier_ = nullptr;
  Evaluator<float>* mask_ = nullptr;
  Evaluator<real>*score_ = nullptr, *slope_ = nullptr;
  ArrayReader<F>* readers_ = nullptr;
  // In the thread's scratch, as BackwardScratch says.
  real *q_, *dout_, *k_, *k_panels_, *v_panels_, *dk_, *dv_, *p_, *ds_, *slope_rows_,
      *score_ds_rows_;
  std::uint8_t* left_out_;
  // In the workspace, at the query tile's first row.
  const real *lse_ = nullptr, *log2_sum_ = nullptr, *delta_ = nullptr;
  real* dq_ = nullptr;       // null = not asked for
  RowSums* sums_ = nullptr;  // of the rows at hand, where they are wanted
  lang::TileKind kinds_[max_tile_rows / group_rows][max_key_groups];
};

template <class F>
KeyTile<F>::KeyTile(const BackwardCall& call, std::int64_t slot, std::int64_t range, int thread)
    : call_(call), range_(range) {
  const std::int64_t head = call.forward.wave.first_head + slot;
  b_ = head / call.forward.h_kv;
  h_kv_ = head % call.forward.h_kv;
  sequence_ = call.forward.sequences + b_;
  const BackwardScratch& map = call.sizes.scratch;
  std::byte* scratch = call.forward.workspace + call.sizes.scratch_offset + thread * map.bytes;
  const auto reals = [scratch](std::int64_t at) { return reinterpret_cast<real*>(scratch + at); };
  q_ = reals(map.q), dout_ = reals(map.dout), k_ = reals(map.k);
  k_panels_ = reals(map.k_panels), v_panels_ = reals(map.v_panels);
  dk_ = reals(map.dk), dv_ = reals(map.dv), p_ = reals(map.p), ds_ = reals(map.ds);
  slope_rows_ = reals(map.slope), score_ds_rows_ = reals(map.score_ds);
  left_out_ = reinterpret_cast<std::uint8_t*>(scratch + map.left_out);
}

/// Panels [keys / panel_keys][width][panel_keys] of rows [keys][stride].
template <class F>
void KeyTile<F>::pack_panels(const real* rows, std::int64_t stride, std::int64_t width,
                             real* panels) const {
  for (int key = 0; key < keys_; key += lanes) {
    transpose_rows<F>(rows + key * stride, stride, width,
                      panels + key / panel_keys * panel_keys * width + key % panel_keys);
  }
}

template <class F>
void KeyTile<F>::load_keys(std::int64_t key_begin, int keys) {
  const ForwardCall& forward = call_.forward;
  const BackwardSizes& sizes = call_.sizes;
  key_begin_ = key_begin;
  keys_ = keys;
  const int padded = (keys + lanes - 1) / lanes * lanes;
  // V's rows are needed only for their panels: they pass through dv's place.
  keys_finite_ = load_rows<F>(forward.v, at().k_batch, h_kv_, at().k_row + key_begin, keys, padded,
                              forward.d_v, 1.0, dv_, sizes.dv_stride);
  pack_panels(dv_, sizes.dv_stride, forward.d_v, v_panels_);
  keys_finite_ &= load_rows<F>(forward.k, at().k_batch, h_kv_, at().k_row + key_begin, keys, padded,
                               forward.d, 1.0, k_, sizes.d_stride);
  pack_panels(k_, sizes.d_stride, forward.d, k_panels_);
  const std::int64_t rows = sizes.tile_keys + group_rows - 1;
  for (std::int64_t i = 0; i < rows * sizes.d_stride; i += lanes) F::store(dk_ + i, vec{});
  for (std::int64_t i = 0; i < rows * sizes.dv_stride; i += lanes) F::store(dv_ + i, vec{});
}

template <class F>
void KeyTile<F>::add_head(std::int64_t member, const lang::Classifier* classifier,
                          Evaluator<float>* mask, Evaluator<real>* score, Evaluator<real>* slope,
                          ArrayReader<F>* readers) {
  choose_head(member);
  classifier_ = classifier;
  mask_ = mask, score_ = score, slope_ = slope, readers_ = readers;
  bounded_ = classifier && classifier->bounds(&bounds_);
  if (sums_) {
    slope_ = nullptr;
    return walk_keys(classifier, {row_begin_, row_begin_ + rows_}, at().s_kv, call_.sizes.tile_keys,
                     this, visit_keys);
  }
  begin_expressions();
  walk_rows(classifier, at().s_q, key_begin_, key_begin_ + keys_, call_.sizes.tile_rows, this,
            visit);
}

template <class F>
void KeyTile<F>::begin_expressions() {
  if (mask_ && !bounded_) mask_->begin_keys(key_begin_, keys_);
  if (score_) score_->begin_keys(key_begin_, keys_);
  if (slope_) slope_->begin_keys(key_begin_, keys_);
  for (ArrayReader<F>* reader = readers_; reader; reader = reader->next) {
    reader->begin_keys(key_begin_, keys_);
  }
}

/// What the mask makes of the rows and keys at hand, where that is neither all nor bounds.
template <class F>
void KeyTile<F>::classify() {
  if (full_ || bounded_) return;
  classify_groups(*classifier_, {row_begin_, row_begin_ + rows_}, key_begin_, key_begin_ + keys_,
                  kinds_);
}

template <class F>
void KeyTile<F>::add_rows(std::int64_t row_begin, int rows, bool full) {
  row_begin_ = row_begin;
  rows_ = rows;
  full_ = full;
  classify();
  load_queries();
  start_dq();
  Run seen[max_tile_rows / group_rows];
  const int groups = (rows + group_rows - 1) / group_rows;
  for (int group = 0; group < groups; ++group) seen[group] = GradientStep<F>(*this, group).run();
  add_to_keys(seen, groups);
}

template <class F>
void KeyTile<F>::load_queries() {
  const ForwardCall& forward = call_.forward;
  const BackwardSizes& sizes = call_.sizes;
  const int padded = (rows_ + group_rows - 1) / group_rows * group_rows;
  bool finite = load_rows<F>(forward.q, b_, h_, at().q_row + row_begin_, rows_, padded, forward.d,
                             forward.q_factor, q_, sizes.d_stride);
  finite &= load_rows<F>(call_.dout, b_, h_, at().q_row + row_begin_, rows_, padded, forward.d_v,
                         1.0, dout_, sizes.dv_stride);
  isolate_ = !(finite && keys_finite_) && (mask_ || score_ || forward.dropout);
  const std::int64_t row = first_tile_ * sizes.tile_rows + row_begin_;
  lse_ = reinterpret_cast<const real*>(forward.workspace + sizes.lse_offset) + row;
  log2_sum_ = reinterpret_cast<const real*>(forward.workspace + sizes.log2_sum_offset) + row;
  delta_ = reinterpret_cast<const real*>(forward.workspace + sizes.delta_offset) + row;
}

template <class F>
void KeyTile<F>::clear_touched(std::int64_t member) {
  choose_head(member);
  std::byte* touched = call_.forward.workspace + call_.sizes.touched_offset + range_;
  for (std::int64_t tile = first_tile_; tile < first_tile_ + sequence_->row_tiles; ++tile) {
    touched[tile * call_.sizes.ranges] = std::byte{0};
  }
}

/// dQ of the tile in this range's buffer; 0 when it is new.
template <class F>
void KeyTile<F>::start_dq() {
  dq_ = nullptr;
  if (!call_.dq.data) return;
  const BackwardSizes& sizes = call_.sizes;
  const std::int64_t tile = first_tile_ + row_begin_ / sizes.tile_rows;
  const std::int64_t buffer = tile * sizes.ranges + range_;
  dq_ = reinterpret_cast<real*>(call_.forward.workspace + sizes.dq_offset) +
        buffer * sizes.tile_rows * sizes.d_stride;
  std::byte& touched = call_.forward.workspace[sizes.touched_offset + buffer];
  if (touched != std::byte{0}) return;
  touched = std::byte{1};
  const int padded = (rows_ + group_rows - 1) / group_rows * group_rows;
  for (std::int64_t i = 0; i < padded * sizes.d_stride; i += lanes) F::store(dq_ + i, vec{});
}

/// dV += P^T dO and dK += dS^T Q for each six keys, over the rows that may see one of them.
template <class F>
void KeyTile<F>::add_to_keys(const Run* seen, int groups) {
  const BackwardSizes& sizes = call_.sizes;
  for (int key = 0; key < keys_; key += group_rows) {
    int first = 0, last = groups - 1;
    const auto sees = [&](int group) {
      return seen[group].begin < key + group_rows && seen[group].end > key;
    };
    while (first < groups && !sees(first)) ++first;
    if (first == groups) continue;
    while (!sees(last)) --last;
    const std::int64_t row = first * group_rows;
    const int end = (last + 1) * group_rows < rows_ ? (last + 1) * group_rows : rows_;
    const std::int64_t steps = end - row, at = row * sizes.p_stride + key;
    const LeftRows<real> p{p_ + at, 1, sizes.p_stride}, ds{ds_ + at, 1, sizes.p_stride};
    const real *dout = dout_ + row * sizes.dv_stride, *q = q_ + row * sizes.d_stride;
    real *dv = dv_ + key * sizes.dv_stride, *dk = dk_ + key * sizes.d_stride;
    if (isolate_) {
      const LeftOut hidden{left_out_ + at, 1, sizes.p_stride, 1};
      const LeftOut hidden_or_dropped{left_out_ + at, 1, sizes.p_stride, 3};
      add_isolated<F>(p, hidden_or_dropped, dout, steps, dv, sizes.dv_stride);
      add_isolated<F>(ds, hidden, q, steps, dk, sizes.d_stride);
      continue;
    }
    if (call_.dv.data) add_product<F>(p, dout, steps, dv, sizes.dv_stride);
    if (call_.dk.data) add_product<F>(ds, q, steps, dk, sizes.d_stride);
  }
}

/// keep[j] for columns [from, stop) of a row of the tile.
template <class F>
void KeyTile<F>::kept_columns(int row, int from, int stop, std::uint8_t* keep) const {
  const Dropout& dropout = *call_.forward.dropout;
  const int first = from / group_keys * group_keys;
  const int count = (stop - first + group_keys - 1) / group_keys * group_keys;
  keep_row(dropout_stream(dropout.seed, dropout.offset, b_, h_), dropout_threshold(dropout.p),
           dropout.row0 + row_begin_ + row, dropout.col0 + key_begin_ + first, count, keep + first);
}

template <class F>
void KeyTile<F>::store_gradients() {
  const BackwardSizes& sizes = call_.sizes;
  const vec dk_factor = F::set1(real(call_.logit_factor)),
            dv_factor = F::set1(real(call_.kept_factor));
  for (int key = 0; key < keys_; ++key) {
    const std::int64_t row = at().k_row + key_begin_ + key;
    real *dk = dk_ + key * sizes.d_stride, *dv = dv_ + key * sizes.dv_stride;
    if (call_.dk.data) {
      for (std::int64_t i = 0; i < sizes.d_stride; i += lanes) {
        F::store(dk + i, F::load(dk + i) * dk_factor);
      }
      output_row(dk, call_.forward.d, address(call_.dk, at().k_batch, row, h_kv_), call_.dk.dtype,
                 call_.dk.d);
    }
    if (call_.dv.data) {
      for (std::int64_t i = 0; i < sizes.dv_stride; i += lanes) {
        F::store(dv + i, F::load(dv + i) * dv_factor);
      }
      output_row(dv, call_.forward.d_v, address(call_.dv, at().k_batch, row, h_kv_), call_.dv.dtype,
                 call_.dv.d);
    }
  }
}
