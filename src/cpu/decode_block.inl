// The decode's register blocks: 1, 2 or 4 rows of Q or P against rows of K or V as they lie.
//   S[rows][keys] = Q[rows][d] . K[key][d]      O[rows][columns] += P[rows][keys] V[key][columns]

template <class F>
typename F::vec load_wide(const typename F::real* from) {
  return F::load(from);
}
template <class F>
typename F::vec load_wide(const Brain* from) {
  return F::load_bfloat16(from);
}
template <class F>
typename F::vec load_wide(const Half* from) {
  return F::load_float16(from);
}

/// Sums of all lanes of `lanes` vectors, in order: halves of pairs fold until one is left.
template <class F>
typename F::vec fold(typename F::vec (&sum)[F::lanes]) {
#pragma GCC unroll 4
  for (int left = F::lanes / 2; left > 0; left /= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < left; ++i) {
      sum[i] = F::interleave_low(sum[i], sum[i + left]) + F::interleave_high(sum[i], sum[i + left]);
    }
  }
  return sum[0];
}

/// Rows of K or V of one head at a time: the caller's own where a row is whole vectors side by
/// side, else widened into a block of reals.
template <class F>
class KeyRows {
 public:
  using real = typename F::real;
  const std::byte* row[block_keys];

  KeyRows(const ForwardCall& call, const Strided& tensor, const Sequence& at,
          std::int64_t first_head, int heads, std::int64_t width, std::int64_t stride, real* block)
      : call_(call),
        tensor_(tensor),
        at_(at),
        first_head_(first_head),
        heads_(heads),
        width_(width),
        stride_(stride),
        block_(block),
        in_place_(tensor.d == 1 && width == stride) {}

  /// What a row's elements are.
  DType dtype() const { return in_place_ ? tensor_.dtype : real_dtype; }

  /// `count` rows of a head from key `first` on; rows after them repeat the last one. The head's
  /// share of the next block, as far as key `end`, is what ask() asks for: some keys of all heads,
  /// so that memory is read in its order.
  void read(std::int64_t first, int count, std::int64_t end, int head) {
    const std::byte* here = key_address(call_, tensor_, at_, first, first_head_ + head);
    std::int64_t page_left = at_.pages ? call_.page_size - first % call_.page_size : block_keys;
    for (int i = 0; i < block_keys; ++i) {
      row[i] = here;
      if (i + 1 < count) {
        here += tensor_.s * tensor_.element_bytes;
        if (--page_left == 0) {
          here = key_address(call_, tensor_, at_, first + i + 1, first_head_ + head);
          page_left = at_.pages ? call_.page_size : block_keys;
        }
      }
      if (in_place_) continue;
      real* wide = block_ + i * stride_;
      unit_row<F>(row[i], tensor_.dtype, tensor_.d, width_, 1.0, wide, stride_);
      row[i] = reinterpret_cast<const std::byte*>(wide);
    }
    ahead_row_ = first + block_keys + block_keys * head / heads_;
    ahead_end_ = first + block_keys + block_keys * (head + 1) / heads_;
    if (ahead_end_ > end) ahead_end_ = end;
    ahead_head_ = 0;
    go_to_row();
  }

  /// Asks for `count` lines more. Few at a time: the core can wait for few lines only, and what
  /// it computes with must come past them.
  void ask(int count) {
    for (; count > 0 && ahead_ < ahead_stop_; --count) {
      __builtin_prefetch(ahead_, 0, 2);
      ahead_ += 64;
      if (ahead_ >= ahead_stop_) go_to_next_row();
    }
  }

 private:
  void go_to_row() {
    ahead_ = ahead_stop_ = nullptr;
    if (ahead_row_ >= ahead_end_) return;
    ahead_ = key_address(call_, tensor_, at_, ahead_row_, first_head_ + ahead_head_);
    ahead_stop_ = ahead_ + width_ * tensor_.element_bytes;
  }
  void go_to_next_row() {
    if (++ahead_head_ == heads_) ahead_head_ = 0, ++ahead_row_;
    go_to_row();
  }
  static constexpr DType real_dtype = sizeof(real) == 8 ? DType::float64 : DType::float32;

  const ForwardCall& call_;
  const Strided& tensor_;
  const Sequence& at_;
  std::int64_t first_head_;
  int heads_;
  std::int64_t width_, stride_;
  real* block_;
  bool in_place_;
  std::int64_t ahead_row_ = 0, ahead_end_ = 0;
  int ahead_head_ = 0;
  const std::byte *ahead_ = nullptr, *ahead_stop_ = nullptr;
};

/// Cache lines of so many elements: what a step of a product uses is what it asks for.
template <class From>
constexpr int lines_of(int elements) {
  return (elements * int(sizeof(From)) + 63) / 64;
}

/// `rows` rows of scores of block_keys keys; d is a multiple of F::lanes.
template <class F, int rows, class From>
void dot_rows(const typename F::real* q, std::int64_t d, KeyRows<F>& keys, typename F::real* s) {
  constexpr int per = F::lanes / rows;
  for (int key = 0; key < block_keys; key += per) {
    const From* row[per];
    for (int c = 0; c < per; ++c) row[c] = reinterpret_cast<const From*>(keys.row[key + c]);
    typename F::vec sum[F::lanes] = {};
    for (std::int64_t i = 0; i < d; i += F::lanes) {
      keys.ask(lines_of<From>(per * F::lanes));
      typename F::vec k[per];
#pragma GCC unroll 16
      for (int c = 0; c < per; ++c) k[c] = load_wide<F>(row[c] + i);
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) {
        const typename F::vec q_r = F::load(q + r * d + i);
#pragma GCC unroll 16
        for (int c = 0; c < per; ++c) sum[r * per + c] = F::fma(q_r, k[c], sum[r * per + c]);
      }
    }
    alignas(64) typename F::real folded[F::lanes];
    F::store(folded, fold<F>(sum));
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
      __builtin_memcpy(s + r * chunk_keys + key, folded + r * per, per * sizeof *s);
    }
  }
}

template <class F, int rows, class From, int vecs>
void weighted_columns(const typename F::real* p, KeyRows<F>& values, int count, std::int64_t column,
                      typename F::real* o, std::int64_t o_stride) {
  typename F::vec sum[rows][vecs];
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < vecs; ++c) sum[r][c] = F::load(o + r * o_stride + column + c * F::lanes);
  }
  for (int key = 0; key < count; ++key) {
    values.ask(lines_of<From>(vecs * F::lanes));
    const From* row = reinterpret_cast<const From*>(values.row[key]) + column;
    typename F::vec v[vecs];
#pragma GCC unroll 4
    for (int c = 0; c < vecs; ++c) v[c] = load_wide<F>(row + c * F::lanes);
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
      const typename F::vec weight = F::set1(p[r * chunk_keys + key]);
#pragma GCC unroll 4
      for (int c = 0; c < vecs; ++c) sum[r][c] = F::fma(weight, v[c], sum[r][c]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < vecs; ++c) F::store(o + r * o_stride + column + c * F::lanes, sum[r][c]);
  }
}

/// `rows` rows of O += P V over `count` keys; o_stride is a multiple of F::lanes.
template <class F, int rows, class From>
void weighted_rows(const typename F::real* p, KeyRows<F>& values, int count, typename F::real* o,
                   std::int64_t o_stride) {
  constexpr int most = F::block_vecs;
  std::int64_t column = 0;
  for (; column + most * F::lanes <= o_stride; column += most * F::lanes) {
    weighted_columns<F, rows, From, most>(p, values, count, column, o, o_stride);
  }
  for (; column < o_stride; column += F::lanes) {
    weighted_columns<F, rows, From, 1>(p, values, count, column, o, o_stride);
  }
}

/// Calls run.template operator()<rows, From>() for the rows of a register block and the element
/// type of the keys' rows.
template <class F, class Run>
void with_block(int rows, DType dtype, const Run& run) {
  const auto with_rows = [&]<class From>() {
    if (rows == 1) {
      run.template operator()<1, From>();
    } else if (rows == 2) {
      run.template operator()<2, From>();
    } else if constexpr (F::lanes >= 4) {
      run.template operator()<4, From>();
    }
  };
  if constexpr (sizeof(typename F::real) == 8) {
    with_rows.template operator()<double>();
  } else if (dtype == DType::float32) {
    with_rows.template operator()<float>();
  } else if (dtype == DType::bfloat16) {
    with_rows.template operator()<Brain>();
  } else {
    with_rows.template operator()<Half>();
  }
}
