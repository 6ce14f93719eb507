// K and V of one key/value head into the layout the register blocks read.
//   K: panels [keys / panel_keys][d units][panel_keys], keys beyond the last one zero
//   V: panels [columns / panel columns][keys / unit_elements][panel columns] of units, columns
//      beyond d_v zero; or in place

/// Key `key` of a sequence in k or v.
inline std::byte* key_address(const ForwardCall& call, const Strided& tensor, const Sequence& at,
                              std::int64_t key, std::int64_t h) {
  if (!at.pages) return address(tensor, at.k_batch, at.k_row + key, h);
  const std::int64_t page = at.pages[key / call.page_size * at.page_stride];
  return address(tensor, page, key % call.page_size, h);
}

/// Transposes rows[lanes][width] of units into panel[width][panel_keys], at one vector of keys.
template <class F>
void transpose_rows(const typename F::unit* rows, std::int64_t row_stride, std::int64_t width,
                    typename F::unit* panel) {
  constexpr int lanes = F::lanes, panel_keys = F::block_vecs * lanes;
  for (std::int64_t first = 0; first < width; first += lanes) {
    typename F::vec square[lanes];
#pragma GCC unroll 16
    for (int r = 0; r < lanes; ++r) square[r] = F::load(rows + r * row_stride + first);
#pragma GCC unroll 4
    for (int done = 1; done < lanes; done *= 2) {
      typename F::vec mixed[lanes];
#pragma GCC unroll 8
      for (int r = 0; r < lanes / 2; ++r) {
        mixed[2 * r] = F::interleave_low(square[r], square[r + lanes / 2]);
        mixed[2 * r + 1] = F::interleave_high(square[r], square[r + lanes / 2]);
      }
#pragma GCC unroll 16
      for (int r = 0; r < lanes; ++r) square[r] = mixed[r];
    }
    const std::int64_t left = width - first;
    if (left >= lanes) {
#pragma GCC unroll 16
      for (int r = 0; r < lanes; ++r) F::store(panel + (first + r) * panel_keys, square[r]);
    } else {
      for (int r = 0; r < left; ++r) F::store(panel + (first + r) * panel_keys, square[r]);
    }
  }
}

template <class F>
void pack_keys(const ForwardCall& call, const Sequence& at, std::int64_t h, std::int64_t first_key,
               typename F::unit* rows, std::byte* packed) {
  constexpr int lanes = F::lanes, panel_keys = F::block_vecs * lanes;
  const std::int64_t width = call.sizes.d_units;
  const std::int64_t row_stride = (width + lanes - 1) / lanes * lanes;
  const bool direct = F::unit_elements == 1 && !at.pages && stored_as<typename F::real>(call.k) &&
                      row_stride == width;
  for (std::int64_t key = first_key; key < first_key + group_keys; key += lanes) {
    auto* panel = reinterpret_cast<typename F::unit*>(packed) +
                  key / panel_keys * panel_keys * width + key % panel_keys;
    for (int r = 0; r < lanes && key + r + rows_ahead < at.s_kv; ++r) {
      prefetch_row(key_address(call, call.k, at, key + r + rows_ahead, h), call.k, call.d);
    }
    if (direct && key + lanes <= at.s_kv) {
      const auto* source =
          reinterpret_cast<const typename F::unit*>(key_address(call, call.k, at, key, h));
      transpose_rows<F>(source, call.k.s, width, panel);
      continue;
    }
    for (int r = 0; r < lanes; ++r) {
      const std::int64_t count = key + r < at.s_kv ? call.d : 0;
      unit_row<F>(count ? key_address(call, call.k, at, key + r, h) : nullptr, call.k.dtype,
                  call.k.d, count, 1.0, rows + r * row_stride, row_stride);
    }
    transpose_rows<F>(rows, row_stride, width, panel);
  }
}

/// One unit row of V from `rows` (its 1 or 2 key rows of `columns` elements each) to its panels.
template <class F>
void store_value_row(const typename F::unit* rows, std::int64_t columns, std::int64_t panel_rows,
                     std::int64_t row, typename F::unit* packed) {
  for (std::int64_t column = 0; column < columns;) {
    const std::int64_t width = panel_vecs<F>((columns - column) / F::lanes) * F::lanes;
    typename F::unit* to = packed + column * panel_rows + row * width;
    if constexpr (F::unit_elements == 2) {
      const Brain* even = reinterpret_cast<const Brain*>(rows) + column;
      const Brain* odd = even + columns;
      Brain* pairs = reinterpret_cast<Brain*>(to);
      for (std::int64_t c = 0; c < width; ++c) {
        pairs[2 * c] = even[c];
        pairs[2 * c + 1] = odd[c];
      }
    } else {
      for (std::int64_t c = 0; c < width; c += F::lanes) {
        F::store(to + c, F::load(rows + column + c));
      }
    }
    column += width;
  }
}

template <class F>
void pack_values(const ForwardCall& call, const Sequence& at, std::int64_t h,
                 std::int64_t first_key, std::int64_t key_groups, typename F::unit* rows,
                 std::byte* packed) {
  const std::int64_t columns = call.sizes.o_stride;
  const std::int64_t panel_rows = key_groups * group_keys / F::unit_elements;
  auto* out = reinterpret_cast<typename F::unit*>(packed);
  for (std::int64_t key = first_key; key < first_key + group_keys; key += F::unit_elements) {
    for (int e = 0; e < F::unit_elements; ++e) {
      if (key + e + rows_ahead < at.s_kv) {
        prefetch_row(key_address(call, call.v, at, key + e + rows_ahead, h), call.v, call.d_v);
      }
      const std::int64_t count = key + e < at.s_kv ? call.d_v : 0;
      unit_row<F>(count ? key_address(call, call.v, at, key + e, h) : nullptr, call.v.dtype,
                  call.v.d, count, 1.0, rows + e * columns / F::unit_elements,
                  columns / F::unit_elements);
    }
    store_value_row<F>(rows, columns, panel_rows, key / F::unit_elements, out);
  }
}

/// Item = group of 64 keys of the wave.
template <class F>
void pack_item(const ForwardCall& call, std::int64_t item, int thread) {
  const ForwardSizes& sizes = call.sizes;
  const KeyGroup part = key_group(call, item);
  if (!any_query_sees(call, part.b, part.h_kv, part.group)) return;
  const Sequence& at = part.sequence->at;
  const std::int64_t first_key = part.group * group_keys;
  std::byte* scratch = call.workspace + sizes.scratch_offset + thread * sizes.scratch.bytes;
  auto* rows = reinterpret_cast<typename F::unit*>(scratch + sizes.scratch.rows);
  pack_keys<F>(call, at, part.h_kv, first_key, rows,
               call.workspace + part.place * sizes.packed_k_bytes);
  if (!sizes.v_in_place) {
    pack_values<F>(call, at, part.h_kv, first_key, part.sequence->key_groups, rows,
                   call.workspace + sizes.v_offset + part.place * sizes.packed_v_bytes);
  }
}
