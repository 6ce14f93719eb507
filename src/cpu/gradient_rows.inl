// What is done row by row: delta before the products, dq after them.

/// sum of o dout over a row, in float64: its error would be in every dS of the row alike, and not
/// average out of sums over keys. Where o is 0, dout has no say (it may be NaN where a row saw no
/// key).
template <class F>
double row_delta(const typename F::real* o, const typename F::real* dout, std::int64_t columns) {
  constexpr int lanes = F::lanes;
  double sums[lanes] = {};
  for (std::int64_t i = 0; i < columns; i += lanes) {
#pragma GCC unroll 16
    for (int lane = 0; lane < lanes; ++lane) {
      const double product = double(o[i + lane]) * double(dout[i + lane]);
      sums[lane] += o[i + lane] == 0 ? 0.0 : product;
    }
  }
  double sum = 0.0;
  for (int lane = 0; lane < lanes; ++lane) sum += sums[lane];
  return sum;
}

/// delta = sum(dout o) - dlse of a chunk of rows, their lse (+inf where a row saw no key: then
/// every weight is 0), and their share in dsink: -sum e^(sink - lse) delta.
template <class F>
void delta_item(const BackwardCall& call, std::int64_t item, int thread) {
  using real = typename F::real;
  const ForwardCall& forward = call.forward;
  const BackwardSizes& sizes = call.sizes;
  const RowTile part = row_tile(forward, item);
  const Sequence& at = part.sequence->at;
  const std::int64_t b = part.b, h = part.h;
  const std::int64_t first = part.tile * sizes.tile_rows;
  const std::int64_t tile = row_tiles_before(forward, *part.sequence, h) + part.tile;
  std::byte* scratch = forward.workspace + sizes.scratch_offset + thread * sizes.scratch.bytes;
  auto* o = reinterpret_cast<real*>(scratch + sizes.scratch.dv);
  auto* dout = reinterpret_cast<real*>(scratch + sizes.scratch.dout);
  const std::int64_t place = (tile - forward.wave.first_row_tile) * sizes.tile_rows;
  real* lse = reinterpret_cast<real*>(forward.workspace + sizes.lse_offset) + place;
  real* delta = reinterpret_cast<real*>(forward.workspace + sizes.delta_offset) + place;
  const auto number = [](const std::byte* from) {
    real x;
    __builtin_memcpy(&x, from, sizeof x);
    return x;
  };
  double dsink = 0.0;
  const std::int64_t left = at.s_q - first;
  const int rows = static_cast<int>(left < sizes.tile_rows ? left : sizes.tile_rows);
  for (int r = 0; r < rows; ++r) {
    const std::int64_t row = at.q_row + first + r;
    unit_row<F>(address(forward.o, b, row, h), forward.o.dtype, forward.o.d, forward.d_v, 1.0, o,
                sizes.dv_stride);
    unit_row<F>(address(call.dout, b, row, h), call.dout.dtype, call.dout.d, forward.d_v, 1.0, dout,
                sizes.dv_stride);
    double sum = row_delta<F>(o, dout, sizes.dv_stride);
    if (call.dlse.data) sum -= number(address(call.dlse, b, row, h));
    const real normaliser = number(address(forward.lse, b, row, h));
    const bool empty = normaliser == -F::infinity;
    delta[r] = real(sum);
    lse[r] = empty ? F::infinity : normaliser;
    if (call.dsink && !empty) {
      const double sink = number(address(forward.sink, 0, 0, h));
      // Of the whole when nothing else counts, beside infinity too.
      const double weight = sink == normaliser ? 1.0 : __builtin_exp(sink - normaliser);
      if (sink != -F::infinity) dsink -= weight * sum;
    }
  }
  if (!call.dsink) return;
  reinterpret_cast<double*>(forward.workspace + sizes.dsink_offset)[tile] = dsink;
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
  const auto factor = F::set1(real(call.dq_factor));
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
      F::store(sum + i, F::load(sum + i) * factor);
    }
    output_row(sum, forward.d, address(call.dq, part.b, at.q_row + first + r, part.h),
               call.dq.dtype, call.dq.d);
  }
}
