// One query tile of one (sequence, query head): rows in, tiles of keys by, outputs out.
//   for each tile of keys, for each group of 6 rows: GroupStep;   then o = O / l

template <class F>
class QueryTile {
 public:
  using real = typename F::real;
  using unit = typename F::unit;
  using vec = typename F::vec;
  static constexpr int lanes = F::lanes;

  QueryTile(const ForwardCall& call, std::int64_t item, int thread);

  /// The classifier and the evaluators are null where the call has no such expression.
  void run(const lang::Classifier* classifier, Evaluator<float>* mask, Evaluator<real>* score);

  std::int64_t b() const { return b_; }
  std::int64_t h() const { return h_; }

 private:
  friend class GroupStep<F>;

  std::int64_t q_row(int r) const { return at_.q_row + row_begin_ + r; }
  int padded_rows() const { return groups_ * group_rows; }
  real sink() const;

  void walk();
  void load_queries();
  void start_rows();
  static void visit(void* tile, std::int64_t key_begin, std::int64_t key_end, bool full) {
    static_cast<QueryTile*>(tile)->step(key_begin, static_cast<int>(key_end - key_begin), full);
  }
  void step(std::int64_t key_begin, int keys, bool full);
  std::uint64_t finish();
  void store_lse(int row, real sum);

  const ForwardCall& call_;
  const lang::Classifier* classifier_ = nullptr;
  Sequence at_;
  bool bounded_ = false;  // the mask is bounds_ exactly
  lang::PairBounds bounds_{};
  Evaluator<float>* mask_ = nullptr;
  Evaluator<real>* score_ = nullptr;
  std::int64_t b_ = 0, h_ = 0, h_kv_ = 0, row_begin_ = 0;
  int rows_ = 0, groups_ = 0;
  bool isolate_ = false;  // hidden keys' V takes no part, be it NaN
  real headroom_ = 1;     // of weights: lets a sum of large values pass
  real first_max_ = 0;
  const unit* k_ = nullptr;
  Values<unit> v_;
  // In the thread's scratch, as ScratchMap says.
  unit* q_ = nullptr;
  real *s_ = nullptr, *o_ = nullptr, *row_sum_ = nullptr, *row_max_ = nullptr;
  lang::TileKind kinds_[max_tile_rows / group_rows][max_key_groups];  // of the tile at hand
};

template <class F>
QueryTile<F>::QueryTile(const ForwardCall& call, std::int64_t item, int thread) : call_(call) {
  const ForwardSizes& sizes = call.sizes;
  const RowTile part = row_tile(call, item);
  at_ = part.sequence->at;
  b_ = part.b, h_ = part.h, h_kv_ = part.h_kv;
  row_begin_ = part.tile * sizes.tile_rows;
  const std::int64_t left = at_.s_q - row_begin_;
  rows_ = static_cast<int>(left < sizes.tile_rows ? left : sizes.tile_rows);
  groups_ = (rows_ + group_rows - 1) / group_rows;
  k_ = reinterpret_cast<const unit*>(call.workspace + part.place * sizes.packed_k_bytes);
  if (sizes.v_in_place) {
    v_ = {reinterpret_cast<const unit*>(address(call.v, at_.k_batch, at_.k_row, h_kv_)), 0,
          call.v.s};
  } else {
    v_ = {reinterpret_cast<const unit*>(call.workspace + sizes.v_offset +
                                        part.place * sizes.packed_v_bytes),
          part.sequence->key_groups * group_keys / F::unit_elements, 0};
  }
  std::byte* scratch = call.workspace + sizes.scratch_offset + thread * sizes.scratch.bytes;
  const ScratchMap& map = sizes.scratch;
  q_ = reinterpret_cast<unit*>(scratch + map.q);
  s_ = reinterpret_cast<real*>(scratch + map.s);
  o_ = reinterpret_cast<real*>(scratch + map.o);
  row_sum_ = reinterpret_cast<real*>(scratch + map.row_sum);
  row_max_ = reinterpret_cast<real*>(scratch + map.row_max);
}

template <class F>
void QueryTile<F>::run(const lang::Classifier* classifier, Evaluator<float>* mask,
                       Evaluator<real>* score) {
  classifier_ = classifier;
  mask_ = mask;
  score_ = score;
  bounded_ = classifier && classifier->bounds(&bounds_);
  walk();
  std::uint64_t bad = finish();
  if (bad == 0) return;
  // A row that is not finite may have got it from keys that it does not see, or from a sum that
  // overflowed: its group once more, the same sums in the same order, without them and scaled.
  isolate_ = true;
  for (std::int64_t keys = at_.s_kv; keys > 0; keys /= 2) headroom_ /= 2;
  const std::int64_t tile_begin = row_begin_, tile_end = row_begin_ + rows_;
  for (int group = 0; bad != 0; ++group, bad >>= 1) {
    if (!(bad & 1U)) continue;
    row_begin_ = tile_begin + group * group_rows;
    const std::int64_t left = tile_end - row_begin_;
    rows_ = static_cast<int>(left < group_rows ? left : group_rows);
    groups_ = 1;
    walk();
    finish();
  }
}

template <class F>
void QueryTile<F>::walk() {
  load_queries();
  start_rows();
  walk_keys(classifier_, {row_begin_, row_begin_ + rows_}, at_.s_kv, call_.sizes.tile_keys, this,
            visit);
}

template <class F>
void QueryTile<F>::load_queries() {
  const std::int64_t width = call_.sizes.d_units;
  for (int r = 0; r < padded_rows(); ++r) {
    if (r + rows_ahead < rows_) {
      prefetch_row(address(call_.q, b_, q_row(r + rows_ahead), h_), call_.q, call_.d);
    }
    const std::int64_t count = r < rows_ ? call_.d : 0;
    unit_row<F>(count ? address(call_.q, b_, q_row(r), h_) : nullptr, call_.q.dtype, call_.q.d,
                count, call_.q_factor, q_ + r * width, width);
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
  first_max_ = -F::infinity;
  if (call_.sink.data) first_max_ = sink();
  const real weight = first_max_ == -F::infinity ? real{0} : real{1};
  for (int i = 0; i < groups_ * group_stride; i += lanes) {
    F::store(row_max_ + i, F::set1(first_max_));
  }
  for (int r = 0; r < padded_rows(); ++r) {
    F::store(row_sum_ + r * lanes, vec{});
    row_sum_[r * lanes] = weight;
  }
  const std::int64_t count = padded_rows() * call_.sizes.o_stride;
  for (std::int64_t i = 0; i < count; i += lanes) F::store(o_ + i, vec{});
}

template <class F>
void QueryTile<F>::step(std::int64_t key_begin, int keys, bool full) {
  if (full || bounded_) {
    const auto kind = full ? lang::TileKind::full : lang::TileKind::partial;
    __builtin_memset(kinds_, static_cast<int>(kind), sizeof kinds_);
  } else {
    classify_groups(*classifier_, {row_begin_, row_begin_ + rows_}, key_begin, key_begin + keys,
                    kinds_);
    mask_->begin_keys(key_begin, keys);
  }
  if (score_) score_->begin_keys(key_begin, keys);
  for (int group = 0; group < groups_; ++group) {
    GroupStep<F>(*this, group, key_begin, keys).run();
  }
}

/// o = O / l and lse of every row. Returns the groups with a row that is not finite, as a bit set.
template <class F>
std::uint64_t QueryTile<F>::finish() {
  const std::int64_t columns = call_.sizes.o_stride;
  const real kept = call_.dropout ? real(1.0 - call_.dropout->p) : real{1};
  const bool direct = stored_as<real>(call_.o) && columns == call_.d_v;
  std::uint64_t bad = 0;
  for (int group = 0; group < groups_; ++group) {
    vec vote{};  // x * 0 is NaN for infinities and NaN
    const int end = (group + 1) * group_rows < rows_ ? (group + 1) * group_rows : rows_;
    for (int r = group * group_rows; r < end; ++r) {
      const real sum = F::reduce_add(F::load(row_sum_ + r * lanes));
      const real divisor = sum == real{0} ? real{1} : sum * kept * headroom_;
      const vec l = F::set1(divisor), reciprocal = F::set1(real{1} / divisor);
      if (r + rows_ahead < rows_) {
        prefetch_row<true>(address(call_.o, b_, q_row(r + rows_ahead), h_), call_.o, call_.d_v);
      }
      std::byte* target = address(call_.o, b_, q_row(r), h_);
      real* o = o_ + r * columns;
      real* to = direct ? reinterpret_cast<real*>(target) : o;
      for (std::int64_t c = 0; c < columns; c += lanes) {
        const vec x = F::divide(F::load(o + c), l, reciprocal);
        vote = F::fma(x, vec{}, vote);
        F::store(to + c, x);
      }
      if (!direct) output_row(o, call_.d_v, target, call_.o.dtype, call_.o.d);
      if (call_.lse.data) store_lse(r, sum);
    }
    if (!(F::reduce_add(vote) == real{0})) bad |= std::uint64_t{1} << group;
  }
  return bad;
}

template <class F>
void QueryTile<F>::store_lse(int row, real sum) {
  const real most = row_max_[row / group_rows * group_stride + row % group_rows];
  real lse = row_lse<F>(most == -F::infinity ? real{0} : most, sum);
  // Nothing but the sink was seen: its very value, not its round trip through log2.
  if (call_.sink.data && sum == real{1} && most == first_max_) lse = most;
  __builtin_memcpy(address(call_.lse, b_, q_row(row), h_), &lse, sizeof lse);
}
