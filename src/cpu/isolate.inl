// The slow path for rows that came out not finite: the very sums of accumulate(), in its order,
// without the V rows of hidden keys (0 * NaN would be NaN).

template <class F>
void QueryTile<F>::output_isolated(int group, std::int64_t key_begin, int begin, int end) {
  const std::int64_t stride = call_.sizes.tile_keys, columns = call_.sizes.o_stride;
  const int padded_end = (end + group_keys - 1) / group_keys * group_keys;
  for (int r = group * group_rows; r < (group + 1) * group_rows; ++r) {
    real* s = s_ + r * stride;
    std::uint8_t hidden[max_tile_keys];
    for (int j = begin; j < padded_end; ++j) hidden[j] = s[j] == -F::infinity;
    weigh(r, key_begin, begin, padded_end);
    const auto* p = reinterpret_cast<const unit*>(s);
    std::int64_t panel = 0, panel_end = 0;
    for (std::int64_t c = 0; c < columns; c += lanes) {
      if (c == panel_end) {
        panel = c;
        panel_end = c + panel_vecs<F>((columns - c) / lanes) * lanes;
      }
      std::int64_t v_stride;
      const unit* v =
          value_row(v_, key_begin / F::unit_elements, panel, panel_end - panel, &v_stride) +
          (c - panel);
      real* o = o_ + r * columns + c;
      vec sum = F::load(o) * F::set1(alpha_[r]);
      for (int j = begin; j < end; j += F::unit_elements) {
        if (hidden[j] && hidden[j + F::unit_elements - 1]) continue;
        const int step = j / F::unit_elements;
        sum = F::dot(F::broadcast(p + step), F::load_visible(v + step * v_stride, hidden + j), sum);
      }
      F::store(o, sum);
    }
  }
}
