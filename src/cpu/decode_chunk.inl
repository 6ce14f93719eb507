// One chunk of keys of some key/value heads of a sequence, for all queries of their groups:
//   S = Q K^T over all heads  ->  score, mask, P = e^(c S - m) row by row  ->  O = P V over all
//   heads
// Row r of a head is query `r % s_q` of the group's head `r / s_q`.

template <class F>
class DecodeChunk {
 public:
  using real = typename F::real;
  using vec = typename F::vec;
  static constexpr int lanes = F::lanes;

  DecodeChunk(const DecodeCall& call, std::int64_t item, int thread);
  void run();

 private:
  /// Columns of the chunk that some row of a head may see; `begin` starts a group of keys.
  struct Seen {
    int begin = 0, end = 0;
    bool partial = false;  // some pair in between may be hidden
  };

  std::int64_t rows() const { return at_.s_q * forward_.group; }
  real* q_of(int head) const { return q_ + head * call_.sizes.rows * call_.sizes.d_stride; }
  real* s_of(int head) const { return s_ + head * call_.sizes.rows * chunk_keys; }
  real* o_of(int head) const { return o_ + head * call_.sizes.rows * call_.sizes.o_stride; }
  real* part_of(int head, std::int64_t row) const {
    return reinterpret_cast<real*>(call_.parts(b_, first_head_ + head, chunk_) +
                                   row * call_.sizes.part_bytes);
  }

  void load_queries(int head);
  void look();
  Seen look_at(std::int64_t h) const;
  void scores();
  void soften(int head);
  void soften_rows(int head, std::int64_t g, Evaluator<float>* mask, Evaluator<real>* score);
  void soften_row(int head, std::int64_t row);
  void outputs();
  void output_isolated(int head);
  bool finish(int head);

  const DecodeCall& call_;
  const ForwardCall& forward_;
  std::byte* scratch_;
  Sequence at_;
  std::int64_t b_ = 0, chunk_ = 0, first_head_ = 0, key_begin_ = 0;
  int heads_ = 0, keys_ = 0, block_rows_ = 1;
  bool isolate_ = false;  // hidden keys' V takes no part, and sums of large values pass
  Seen seen_[decode_item_rows];
  // In the thread's scratch, as DecodeScratch says.
  real *q_, *s_, *o_, *block_;
  std::uint8_t* visible_;
};

template <class F>
DecodeChunk<F>::DecodeChunk(const DecodeCall& call, std::int64_t item, int thread)
    : call_(call), forward_(call.forward) {
  const DecodeSizes& sizes = call.sizes;
  first_head_ = item % sizes.head_blocks * sizes.heads;
  chunk_ = item / sizes.head_blocks % sizes.chunks;
  b_ = item / sizes.head_blocks / sizes.chunks;
  at_ = forward_.sequences[b_].at;
  key_begin_ = chunk_ * chunk_keys;
  const std::int64_t heads_left = forward_.h_kv - first_head_, left = at_.s_kv - key_begin_;
  heads_ = static_cast<int>(heads_left < sizes.heads ? heads_left : sizes.heads);
  keys_ = static_cast<int>(left < chunk_keys ? left : chunk_keys);
  block_rows_ = decode_block_rows(sizes.rows, lanes);
  scratch_ = forward_.workspace + sizes.scratch_offset + thread * sizes.scratch.bytes;
  q_ = reinterpret_cast<real*>(scratch_ + sizes.scratch.q);
  s_ = reinterpret_cast<real*>(scratch_ + sizes.scratch.s);
  o_ = reinterpret_cast<real*>(scratch_ + sizes.scratch.o);
  block_ = reinterpret_cast<real*>(scratch_ + sizes.scratch.block);
  visible_ = reinterpret_cast<std::uint8_t*>(scratch_ + sizes.scratch.visible);
}

template <class F>
void DecodeChunk<F>::run() {
  if (keys_ <= 0 || at_.s_q == 0) return;
  for (int head = 0; head < heads_; ++head) load_queries(head);
  look();
  scores();
  for (int head = 0; head < heads_; ++head) soften(head);
  outputs();
  for (int head = 0; head < heads_; ++head) {
    if (finish(head)) continue;
    // A row that is not finite may have got it from keys that it does not see, or from a sum that
    // overflowed: the head once more, the same sums in the same order, without them and scaled.
    isolate_ = true;
    Seen all[decode_item_rows];
    for (int other = 0; other < heads_; ++other) {
      all[other] = seen_[other];
      if (other != head) seen_[other] = {};
    }
    scores();
    soften(head);
    output_isolated(head);
    finish(head);
    for (int other = 0; other < heads_; ++other) seen_[other] = all[other];
    isolate_ = false;
  }
}

template <class F>
void DecodeChunk<F>::load_queries(int head) {
  const std::int64_t stride = call_.sizes.d_stride;
  for (std::int64_t r = 0; r < call_.sizes.rows; ++r) {
    const std::int64_t h = (first_head_ + head) * forward_.group + r / at_.s_q;
    const std::int64_t count = r < rows() ? forward_.d : 0;
    unit_row<F>(count ? address(forward_.q, b_, at_.q_row + r % at_.s_q, h) : nullptr,
                forward_.q.dtype, forward_.q.d, count, forward_.q_factor, q_of(head) + r * stride,
                stride);
  }
}

/// Which columns each head looks at, once for all heads where the mask does not vary with them.
template <class F>
void DecodeChunk<F>::look() {
  for (int head = 0; head < heads_; ++head) {
    Seen& seen = seen_[head];
    seen = {0, keys_, false};
    if (!forward_.mask) continue;
    if (head > 0 && !call_.mask_varies_by_head) {
      seen = seen_[0];
      continue;
    }
    const std::int64_t heads = call_.mask_varies_by_head ? forward_.group : 1;
    seen = look_at((first_head_ + head) * forward_.group);
    for (std::int64_t g = 1; g < heads; ++g) {
      const Seen more = look_at((first_head_ + head) * forward_.group + g);
      const bool none = seen.begin == seen.end, nothing_more = more.begin == more.end;
      seen.partial |= more.partial || more.begin != seen.begin || more.end != seen.end;
      if (nothing_more) continue;
      seen.begin = none || more.begin < seen.begin ? more.begin : seen.begin;
      seen.end = none || more.end > seen.end ? more.end : seen.end;
    }
  }
}

template <class F>
typename DecodeChunk<F>::Seen DecodeChunk<F>::look_at(std::int64_t h) const {
  const lang::Classifier classifier(*forward_.mask, forward_.problem->scope(b_, h),
                                    scope_record(forward_, b_, h)->summaries);
  const auto kind = [&](int begin, int end) {
    return classifier.classify({0, at_.s_q, key_begin_ + begin, key_begin_ + end});
  };
  const lang::TileKind all = kind(0, keys_);
  if (all == lang::TileKind::full) return {0, keys_, false};
  if (all == lang::TileKind::skip) return {0, 0, true};
  Seen seen{0, keys_, true};
  const auto group_end = [&](int begin) {
    return begin + group_keys < keys_ ? begin + group_keys : keys_;
  };
  while (seen.begin < keys_ && kind(seen.begin, group_end(seen.begin)) == lang::TileKind::skip) {
    seen.begin += group_keys;
  }
  if (seen.begin >= keys_) return {0, 0, true};
  int last = (keys_ - 1) / group_keys * group_keys;
  while (last > seen.begin && kind(last, group_end(last)) == lang::TileKind::skip) {
    last -= group_keys;
  }
  seen.end = group_end(last);
  return seen;
}

/// S = Q K^T, a block of keys of every head after the other.
template <class F>
void DecodeChunk<F>::scores() {
  const std::int64_t stride = call_.sizes.d_stride;
  KeyRows<F> keys(forward_, forward_.k, at_, first_head_, heads_, forward_.d, stride, block_);
  for (int column = 0; column < keys_; column += block_keys) {
    const int count = keys_ - column < block_keys ? keys_ - column : block_keys;
    for (int head = 0; head < heads_; ++head) {
      if (column < seen_[head].begin || column >= seen_[head].end) continue;
      keys.read(key_begin_ + column, count, at_.s_kv, head);
      for (std::int64_t r = 0; r < call_.sizes.rows; r += block_rows_) {
        const real* q = q_of(head) + r * stride;
        real* s = s_of(head) + r * chunk_keys + column;
        with_block<F>(block_rows_, keys.dtype(),
                      [&]<int rows, class From>() { dot_rows<F, rows, From>(q, stride, keys, s); });
      }
    }
  }
}

template <class F>
void DecodeChunk<F>::soften(int head) {
  const Seen seen = seen_[head];
  const bool masked = forward_.mask && seen.partial;
  for (std::int64_t g = 0; g < forward_.group; ++g) {
    if (!masked && !forward_.score) {
      soften_rows(head, g, nullptr, nullptr);
      continue;
    }
    const std::int64_t h = (first_head_ + head) * forward_.group + g;
    const lang::Scope scope = forward_.problem->scope(b_, h);
    const ScopeRecord* record = scope_record(forward_, b_, h);
    const auto with_mask = [&](Evaluator<float>* mask) {
      if (!forward_.score) return soften_rows(head, g, mask, nullptr);
      Evaluator<real> score(*forward_.score, scope, record->score_int32,
                            scratch_ + call_.sizes.scratch.score);
      score.begin_keys(key_begin_, keys_);
      soften_rows(head, g, mask, &score);
    };
    if (!masked) {
      with_mask(nullptr);
      continue;
    }
    Evaluator<float> mask(*forward_.mask, scope, record->mask_int32,
                          scratch_ + call_.sizes.scratch.mask);
    mask.begin_keys(key_begin_, keys_);
    with_mask(&mask);
  }
}

/// Scores of one query head to weights; -inf for what its rows do not see.
template <class F>
void DecodeChunk<F>::soften_rows(int head, std::int64_t g, Evaluator<float>* mask,
                                 Evaluator<real>* score) {
  const Seen seen = seen_[head];
  const int count = seen.end - seen.begin;
  const vec scale = F::set1(real(forward_.score_scale));
  for (std::int64_t i = 0; i < at_.s_q; ++i) {
    const std::int64_t r = g * at_.s_q + i;
    real* s = s_of(head) + r * chunk_keys;
    std::uint8_t* visible = visible_ + r * chunk_keys;
    if (score && count > 0) {
      for (int j = seen.begin; j < seen.end; j += lanes) F::store(s + j, F::load(s + j) * scale);
      score->score_row(i, seen.begin, count, s + seen.begin);
    }
    for (int j = seen.end; j < chunk_keys && j % (2 * lanes) != 0; ++j) s[j] = -F::infinity;
    if (mask && count > 0) {
      __builtin_memset(visible + seen.begin, 0, chunk_keys - seen.begin);
      mask->mask_row(i, seen.begin, count, visible + seen.begin);
      for (int j = seen.begin; j < seen.end; j += lanes) {
        F::store(s + j, F::hide(F::load(s + j), visible + j));
      }
    }
    soften_row(head, r);
  }
}

/// P = e^(c S - m) of one row; m and l into its part.
template <class F>
void DecodeChunk<F>::soften_row(int head, std::int64_t row) {
  real* s = s_of(head) + row * chunk_keys;
  const int begin = seen_[head].begin;
  const int end = (seen_[head].end + 2 * lanes - 1) / (2 * lanes) * (2 * lanes);
  vec most = F::set1(-F::infinity);
  for (int j = begin; j < end; j += lanes) most = F::max(F::load(s + j), most);
  const real scale = real(forward_.weight_scale), m = F::reduce_max(most) * scale;
  const real used = m == -F::infinity ? real{0} : m;
  if (isolate_) {
    std::uint8_t* hidden = visible_ + row * chunk_keys;
    for (int j = begin; j < end; ++j) hidden[j] = s[j] == -F::infinity;
  }
  alignas(64) real sum[lanes] = {};
  if (used > large_logit || used < -large_logit) {
    weigh_row<F, true>(s, begin, end, scale, used, real{0}, sum);
  } else {
    weigh_row<F, false>(s, begin, end, real(forward_.weight_scale * log2_of_e),
                        used * real(log2_of_e), real{0}, sum);
  }
  real* part = part_of(head, row);
  part[0] = m;
  part[1] = F::reduce_add(F::load(sum));
}

/// O = P V, a block of keys of every head after the other.
template <class F>
void DecodeChunk<F>::outputs() {
  const std::int64_t stride = call_.sizes.o_stride;
  for (std::int64_t i = 0; i < heads_ * call_.sizes.rows * stride; i += lanes) {
    F::store(o_ + i, vec{});
  }
  KeyRows<F> values(forward_, forward_.v, at_, first_head_, heads_, forward_.d_v, stride, block_);
  for (int column = 0; column < keys_; column += block_keys) {
    for (int head = 0; head < heads_; ++head) {
      if (column < seen_[head].begin || column >= seen_[head].end) continue;
      const int left = seen_[head].end - column, count = left < block_keys ? left : block_keys;
      values.read(key_begin_ + column, count, at_.s_kv, head);
      for (std::int64_t r = 0; r < call_.sizes.rows; r += block_rows_) {
        const real* p = s_of(head) + r * chunk_keys + column;
        real* o = o_of(head) + r * stride;
        with_block<F>(block_rows_, values.dtype(), [&]<int rows, class From>() {
          weighted_rows<F, rows, From>(p, values, count, o, stride);
        });
      }
    }
  }
}

/// The sums of outputs() for one head, without hidden keys (0 * NaN would be NaN), and scaled so
/// that no sum of finite values overflows.
template <class F>
void DecodeChunk<F>::output_isolated(int head) {
  const std::int64_t stride = call_.sizes.o_stride;
  const Seen seen = seen_[head];
  for (std::int64_t i = 0; i < call_.sizes.rows * stride; ++i) o_of(head)[i] = 0;
  KeyRows<F> values(forward_, forward_.v, at_, first_head_, heads_, forward_.d_v, stride, block_);
  for (int column = seen.begin; column < seen.end; column += block_keys) {
    const int left = seen.end - column, count = left < block_keys ? left : block_keys;
    values.read(key_begin_ + column, count, 0, head);
    with_block<F>(1, values.dtype(), [&]<int, class From>() {
      for (std::int64_t r = 0; r < rows(); ++r) {
        for (int key = 0; key < count; ++key) {
          if (visible_[r * chunk_keys + column + key]) continue;  // here: hidden
          const vec p = F::set1(s_of(head)[r * chunk_keys + column + key] / chunk_keys);
          const From* v = reinterpret_cast<const From*>(values.row[key]);
          for (std::int64_t c = 0; c < stride; c += lanes) {
            real* o = o_of(head) + r * stride + c;
            F::store(o, F::fma(p, load_wide<F>(v + c), F::load(o)));
          }
        }
      }
    });
  }
}

/// o = O / l into each row's part. False when one of them is not finite.
template <class F>
bool DecodeChunk<F>::finish(int head) {
  const std::int64_t stride = call_.sizes.o_stride;
  vec vote{};  // x * 0 is NaN for infinities and NaN
  for (std::int64_t r = 0; r < rows(); ++r) {
    real* part = part_of(head, r);
    const real l = isolate_ ? part[1] / chunk_keys : part[1];
    const vec divisor = F::set1(l == real{0} ? real{1} : l);
    for (std::int64_t c = 0; c < stride; c += lanes) {
      const vec x = F::load(o_of(head) + r * stride + c) / divisor;
      vote = F::fma(x, vec{}, vote);
      F::store(part + lanes + c, x);
    }
  }
  return F::reduce_add(vote) == real{0};
}

template <class F>
void decode_item(const DecodeCall& call, std::int64_t item, int thread) {
  DecodeChunk<F>(call, item, thread).run();
}
