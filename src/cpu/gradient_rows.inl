// What is done row by row: delta and normalisers before the products, dq after them.

/// sum of o dout over a row, in float64: its error would be in every dS of the row alike, and not
/// average out of sums over keys. Where o is 0, dout has no say (it may be NaN where a row saw no
/// key). `size` = sum |o dout|.
template <class F>
double row_delta(const typename F::real* o, const typename F::real* dout, std::int64_t columns,
                 double& size) {
  constexpr int lanes = F::lanes;
  double sums[lanes] = {}, sizes[lanes] = {};
  for (std::int64_t i = 0; i < columns; i += lanes) {
#pragma GCC unroll 16
    for (int lane = 0; lane < lanes; ++lane) {
      const double product = double(o[i + lane]) * double(dout[i + lane]);
      const double counted = o[i + lane] == 0 ? 0.0 : product;
      sums[lane] += counted;
      sizes[lane] += counted < 0 ? -counted : counted;
    }
  }
  double sum = size = 0.0;
  for (int lane = 0; lane < lanes; ++lane) sum += sums[lane], size += sizes[lane];
  return sum;
}

template <class F>
void add_head(KeyTile<F>& tile, std::int64_t member, const BackwardCall& call, std::byte* scratch);

/// The rows of one query tile of the wave, and where what is known of them lies.
template <class F>
class Rows {
 public:
  using real = typename F::real;

  Rows(const BackwardCall& call, std::int64_t item, int thread);

  /// delta = sum(dout o) - dlse, and lse: +inf where a row saw no key, so that every weight is 0.
  void read();
  /// Where lse or o do not say enough: normalisers and deltas from the logits.
  void refine();
  /// The rows' share in dsink: -sum e^(sink - lse) delta.
  void add_to_dsink() const;

 private:
  static real number(const std::byte* from) {
    real x;
    __builtin_memcpy(&x, from, sizeof x);
    return x;
  }
  double dlse(int r) const {
    if (!call_.dlse.data) return 0.0;
    return number(address(call_.dlse, part_.b, part_.sequence->at.q_row + first_ + r, part_.h));
  }
  double sink() const { return number(address(call_.forward.sink, 0, 0, part_.h)); }
  bool reads_rounded_o() const {
    return call_.term_count > 0 && call_.forward.q.element_bytes == 2;
  }
  bool wanting(int r) const;

  const BackwardCall& call_;
  const RowTile part_;
  const int thread_;
  std::int64_t first_, tile_;  // first row; the tile among those of all heads
  int rows_;
  std::byte* scratch_;
  real *lse_, *log2_sum_, *delta_;
  double delta_size_[max_tile_rows];  // what could cancel in delta
};

template <class F>
Rows<F>::Rows(const BackwardCall& call, std::int64_t item, int thread)
    : call_(call), part_(row_tile(call.forward, item)), thread_(thread) {
  const ForwardCall& forward = call.forward;
  const BackwardSizes& sizes = call.sizes;
  first_ = part_.tile * sizes.tile_rows;
  tile_ = row_tiles_before(forward, *part_.sequence, part_.h) + part_.tile;
  const std::int64_t left = part_.sequence->at.s_q - first_;
  rows_ = static_cast<int>(left < sizes.tile_rows ? left : sizes.tile_rows);
  scratch_ = forward.workspace + sizes.scratch_offset + thread * sizes.scratch.bytes;
  const std::int64_t place = (tile_ - forward.wave.first_row_tile) * sizes.tile_rows;
  const auto reals = [&](std::int64_t offset) {
    return reinterpret_cast<real*>(forward.workspace + offset) + place;
  };
  lse_ = reals(sizes.lse_offset), log2_sum_ = reals(sizes.log2_sum_offset);
  delta_ = reals(sizes.delta_offset);
}

template <class F>
void Rows<F>::read() {
  const ForwardCall& forward = call_.forward;
  const BackwardSizes& sizes = call_.sizes;
  auto* o = reinterpret_cast<real*>(scratch_ + sizes.scratch.dv);
  auto* dout = reinterpret_cast<real*>(scratch_ + sizes.scratch.dout);
  for (int r = 0; r < rows_; ++r) {
    const std::int64_t row = part_.sequence->at.q_row + first_ + r;
    unit_row<F>(address(forward.o, part_.b, row, part_.h), forward.o.dtype, forward.o.d,
                forward.d_v, 1.0, o, sizes.dv_stride);
    unit_row<F>(address(call_.dout, part_.b, row, part_.h), call_.dout.dtype, call_.dout.d,
                forward.d_v, 1.0, dout, sizes.dv_stride);
    delta_[r] = real(row_delta<F>(o, dout, sizes.dv_stride, delta_size_[r]) - dlse(r));
    const real lse = number(address(forward.lse, part_.b, row, part_.h));
    lse_[r] = lse == -F::infinity ? F::infinity : lse;
    log2_sum_[r] = -1;
  }
}

template <class F>
bool Rows<F>::wanting(int r) const {
  const real size = lse_[r] < 0 ? -lse_[r] : lse_[r];
  if (!(size < F::infinity)) return false;
  return size >= large_lse || reads_rounded_o();
}

template <class F>
void Rows<F>::refine() {
  bool any = false;
  for (int r = 0; r < rows_; ++r) any |= wanting(r);
  if (!any) return;
  const ForwardCall& forward = call_.forward;
  RowSums sums[max_tile_rows];
  const double sink_or_none = forward.sink.data ? sink() : -__builtin_huge_val();
  for (int r = 0; r < rows_ && sink_or_none > -__builtin_huge_val(); ++r) {
    sums[r].most = sink_or_none, sums[r].sum = 1.0;
  }
  const std::int64_t head = part_.b * forward.h_kv + part_.h_kv;
  KeyTile<F> tile(call_, head - forward.wave.first_head, 0, thread_);
  tile.want_sums(first_, rows_, sums);
  add_head<F>(tile, part_.h % forward.group, call_, scratch_);
  // The forward rounds lse, and before that as its dtype allows: o and, there, weights too.
  const DType dtype = forward.q.dtype;
  const double relative = sizeof(real) == 8 ? 0x1p-51 : 0x1.8p-23;
  const double absolute = dtype == DType::bfloat16  ? 0x1p-11
                          : dtype == DType::float16 ? 0x1p-14
                                                    : 0.0;
  const double of_rounding = dtype == DType::bfloat16 ? 0x1p-8 : 0x1p-11;
  for (int r = 0; r < rows_; ++r) {
    if (!wanting(r) || !sums[r].are_all_of(lse_[r], relative, absolute)) continue;
    lse_[r] = real(sums[r].most);
    log2_sum_[r] = real(__builtin_log2(sums[r].sum));
    if (!reads_rounded_o()) continue;
    const double own = sums[r].product / sums[r].sum - dlse(r), apart = own - delta_[r];
    const double allowed = of_rounding * (delta_size_[r] + sums[r].size / sums[r].sum);
    if (-allowed <= apart && apart <= allowed) delta_[r] = real(own);
  }
}

template <class F>
void Rows<F>::add_to_dsink() const {
  const double of_head = sink();
  double dsink = 0.0;
  for (int r = 0; r < rows_ && of_head != -__builtin_huge_val(); ++r) {
    const double log2_sum = log2_sum_[r] < 0 ? 0.0 : double(log2_sum_[r]);
    // Of the whole when nothing else counts, beside infinity too.
    const double distance = of_head == lse_[r] ? 0.0 : of_head - lse_[r];
    if (distance == -__builtin_huge_val()) continue;
    dsink -= __builtin_exp(distance - log2_sum * ln_of_2) * delta_[r];
  }
  reinterpret_cast<double*>(call_.forward.workspace + call_.sizes.dsink_offset)[tile_] = dsink;
}

template <class F>
void delta_item(const BackwardCall& call, std::int64_t item, int thread) {
  Rows<F> rows(call, item, thread);
  rows.read();
  rows.refine();
  if (call.dsink) rows.add_to_dsink();
}

/// dq = scale * the sum of the key ranges' buffers, in order, for one tile of queries.
template <class F>
void queries_item(const BackwardCall& call, std::int64_t item, int thread) {
  using real = typename F::real;
  const ForwardCall& forward = call.forward;
  const BackwardSizes& sizes = call.sizes;
  const RowTile part = row_tile(forward, item);
  const Sequence& at = part.sequence->at;
  const std::int64_t tile =
      row_tiles_before(forward, *part.sequence, part.h) + part.tile - forward.wave.first_row_tile;
  const std::int64_t first = part.tile * sizes.tile_rows, left = at.s_q - first;
  const int rows = static_cast<int>(left < sizes.tile_rows ? left : sizes.tile_rows);
  auto* sum = reinterpret_cast<real*>(forward.workspace + sizes.scratch_offset +
                                      thread * sizes.scratch.bytes + sizes.scratch.q);
  const auto* buffers = reinterpret_cast<const real*>(forward.workspace + sizes.dq_offset) +
                        tile * sizes.ranges * sizes.tile_rows * sizes.d_stride;
  const std::byte* touched = forward.workspace + sizes.touched_offset + tile * sizes.ranges;
  const auto factor = F::set1(real(call.logit_factor));
  const auto q_factor = F::set1(real(forward.q_factor));
  for (int r = 0; r < rows; ++r) {
    for (std::int64_t i = 0; i < sizes.d_stride; i += F::lanes)
      F::store(sum + i, typename F::vec{});
    for (std::int64_t range = 0; range < sizes.ranges; ++range) {
      if (touched[range] == std::byte{0}) continue;
      const real* part_row = buffers + (range * sizes.tile_rows + r) * sizes.d_stride;
      for (std::int64_t i = 0; i < sizes.d_stride; i += F::lanes) {
        F::store(sum + i, F::load(sum + i) + F::load(part_row + i));
      }
    }
    for (std::int64_t i = 0; i < sizes.d_stride; i += F::lanes) {
      F::store(sum + i, F::load(sum + i) * factor * q_factor);
    }
    output_row(sum, forward.d, address(call.dq, part.b, at.q_row + first + r, part.h),
               call.dq.dtype, call.dq.d);
  }
}
