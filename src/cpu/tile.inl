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

  QueryTile(const ForwardCall& call, std::int64_t item, int thread) : call_(call) {
    const ForwardSizes& sizes = call.sizes;
    // Late rows first: under a causal mask they are the long ones.
    const std::int64_t tile = sizes.row_tiles - 1 - item % sizes.row_tiles;
    const std::int64_t query_head = item / sizes.row_tiles;  // in the wave
    const std::int64_t slot = query_head / call.group;
    const std::int64_t head = call.first_head + slot;
    b_ = head / call.h_kv;
    h_kv_ = head % call.h_kv;
    h_ = h_kv_ * call.group + query_head % call.group;
    row_begin_ = tile * sizes.tile_rows;
    const std::int64_t left = call.s_q - row_begin_;
    rows_ = static_cast<int>(left < sizes.tile_rows ? left : sizes.tile_rows);
    groups_ = (rows_ + group_rows - 1) / group_rows;
    k_ = reinterpret_cast<const unit*>(call.workspace + slot * sizes.packed_k_bytes);
    if (sizes.v_in_place) {
      v_ = reinterpret_cast<const unit*>(address(call.v, b_, 0, h_kv_));
      v_stride_ = call.v.s;
    } else {
      v_ = reinterpret_cast<const unit*>(call.workspace + sizes.v_offset +
                                         slot * sizes.packed_v_bytes);
      v_stride_ = sizes.o_stride;
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

  void run() {
    load_queries();
    start_rows();
    const std::int64_t tiles = (call_.s_kv + call_.sizes.tile_keys - 1) / call_.sizes.tile_keys;
    for (std::int64_t tile = 0; tile < tiles; ++tile) step(tile);
    finish();
  }

 private:
  int padded_rows() const { return groups_ * group_rows; }

  void load_queries() {
    const std::int64_t width = call_.sizes.d_units;
    for (int r = 0; r < padded_rows(); ++r) {
      const std::int64_t count = r < rows_ ? call_.d : 0;
      unit_row<F>(count ? address(call_.q, b_, row_begin_ + r, h_) : nullptr, call_.q.dtype,
                  call_.q.d, count, call_.q_factor, q_ + r * width, width);
    }
  }

  /// The sink, where there is one, is a first key of weight 1 and value 0.
  void start_rows() {
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

  real sink() const {
    real value;
    __builtin_memcpy(&value, address(call_.sink, 0, 0, h_), sizeof value);
    return value;
  }

  void step(std::int64_t tile) {
    const std::int64_t key_begin = tile * call_.sizes.tile_keys;
    const std::int64_t left = call_.s_kv - key_begin;
    const int keys = static_cast<int>(left < call_.sizes.tile_keys ? left : call_.sizes.tile_keys);
    const int key_groups = (keys + group_keys - 1) / group_keys;
    for (int r = 0; r < padded_rows(); ++r) F::store(row_max_ + r * lanes, F::set1(-F::infinity));
    for (int kg = 0; kg < key_groups; ++kg) scores(key_begin, kg, keys);
    for (int r = 0; r < padded_rows(); ++r) {
      tile_max_[r] = F::reduce_max(F::load(row_max_ + r * lanes));
    }
    rescale<F>(padded_rows(), real(call_.weight_log2), tile_max_, max_log2_, used_max_log2_,
               alpha_);
    for (int g = 0; g < groups_; ++g) accumulate(g, key_begin, 0, key_groups, keys);
  }

  /// S of all rows against one group of 64 keys. Keys beyond the last one are hidden.
  void scores(std::int64_t key_begin, int key_group, int keys) {
    const std::int64_t stride = call_.sizes.tile_keys, width = call_.sizes.d_units;
    const int real_keys = keys - key_group * group_keys;
    const bool whole = real_keys >= group_keys;
    for (int panel = 0; panel < group_keys / panel_keys; ++panel) {
      const int column = key_group * group_keys + panel * panel_keys;
      const unit* k = k_ + (key_begin + column) * width;
      for (int g = 0; g < groups_; ++g) {
        score_block<F>(q_ + g * group_rows * width, width, k, s_ + g * group_rows * stride + column,
                       stride, whole ? row_max_ + g * group_rows * lanes : nullptr);
      }
    }
    if (whole) return;
    std::uint8_t visible[group_keys];
    for (int j = 0; j < group_keys; ++j) visible[j] = j < real_keys;
    for (int r = 0; r < padded_rows(); ++r) {
      real* s = s_ + r * stride + key_group * group_keys;
      vec most = F::load(row_max_ + r * lanes);
      for (int j = 0; j < group_keys; j += lanes) {
        const vec seen = F::hide(F::load(s + j), visible + j);
        F::store(s + j, seen);
        most = F::max(seen, most);
      }
      F::store(row_max_ + r * lanes, most);
    }
  }

  /// Softmax of the 6 rows of one group over its key groups [begin, end), then O = alpha O + P V.
  void accumulate(int group, std::int64_t key_begin, int begin, int end, int keys) {
    const std::int64_t stride = call_.sizes.tile_keys;
    const int first = group * group_rows;
    const int column = begin * group_keys;
    const int stop = end * group_keys < keys ? end * group_keys : keys;
    for (int r = first; r < first + group_rows; ++r) {
      weigh_row<F>(s_ + r * stride, column, end * group_keys, real(call_.weight_log2),
                   used_max_log2_[r], alpha_[r], row_sum_ + r * lanes);
    }
    const auto* p = reinterpret_cast<const unit*>(s_ + first * stride);
    const int steps = (stop - column + F::unit_elements - 1) / F::unit_elements;
    output_rows<F>(p + column / F::unit_elements, stride * sizeof(real) / sizeof(unit),
                   v_ + (key_begin + column) / F::unit_elements * v_stride_, v_stride_, steps,
                   o_ + first * call_.sizes.o_stride, call_.sizes.o_stride, alpha_ + first);
  }

  void finish() {
    for (int r = 0; r < rows_; ++r) {
      const real sum = F::reduce_add(F::load(row_sum_ + r * lanes));
      real* o = o_ + r * call_.sizes.o_stride;
      const vec divisor = F::set1(sum == real{0} ? real{1} : sum);
      for (std::int64_t c = 0; c < call_.sizes.o_stride; c += lanes) {
        F::store(o + c, F::load(o + c) / divisor);
      }
      output_row(o, call_.d_v, address(call_.o, b_, row_begin_ + r, h_), call_.o.dtype, call_.o.d);
      if (call_.lse.data) store_lse(r, sum);
    }
  }

  void store_lse(int r, real sum) {
    real lse =
        (used_max_log2_[r] + real(__builtin_log2(double(sum)))) * real(0.69314718055994530942);
    // Nothing but the sink was seen: its very value, not its round trip through log2.
    if (call_.sink.data && sum == real{1} && lse != sink() &&
        used_max_log2_[r] == sink() * real(1.4426950408889634074)) {
      lse = sink();
    }
    __builtin_memcpy(address(call_.lse, b_, row_begin_ + r, h_), &lse, sizeof lse);
  }

  const ForwardCall& call_;
  std::int64_t b_ = 0, h_ = 0, h_kv_ = 0, row_begin_ = 0;
  int rows_ = 0, groups_ = 0;
  real first_log2_ = 0;
  const unit* k_ = nullptr;
  const unit* v_ = nullptr;
  std::int64_t v_stride_ = 0;
  unit* q_ = nullptr;
  real *s_ = nullptr, *o_ = nullptr, *row_max_ = nullptr, *row_sum_ = nullptr;
  real *tile_max_ = nullptr, *max_log2_ = nullptr, *used_max_log2_ = nullptr, *alpha_ = nullptr;
};

template <class F>
void run_item(const ForwardCall& call, std::int64_t item, int thread) {
  QueryTile<F>(call, item, thread).run();
}

template <class F>
constexpr ForwardKernels forward_kernels_of() {
  return {{.real_bytes = sizeof(typename F::real),
           .unit_bytes = sizeof(typename F::unit),
           .unit_elements = F::unit_elements,
           .lanes = F::lanes,
           .panel_keys = F::block_vecs * F::lanes},
          pack_item<F>,
          run_item<F>,
          multiply_only<F>};
}
