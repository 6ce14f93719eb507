// The register block, where nearly all time goes: 6 rows x (2 or 4) vectors of sums stay in
// registers while the summed dim runs.
//   scores:  S[6][panel keys]  = Q[6][d]    K[d][panel keys]
//   output:  O[6][columns]     = alpha O[6][columns] + P[6][keys] V[keys][columns]

template <class F, int vecs>
struct Block {
  typename F::vec sum[group_rows][vecs];
};

/// block.sum[r] += sum over i < steps of a[r][i] * b[i]; a[r][i] lies r * a_row + i * a_step after
/// `a`: only single elements of it are read, so its transpose costs nothing. The columns come from
/// the second cache, six steps ahead of their use: 2 to 3 % on Emerald Rapids.
template <class F, int vecs>
[[gnu::always_inline]] inline void multiply(Block<F, vecs>& block, const typename F::unit* a,
                                            std::int64_t a_row, std::int64_t a_step,
                                            const typename F::unit* b, std::int64_t b_stride,
                                            std::int64_t steps) {
  for (std::int64_t i = 0; i < steps; ++i, b += b_stride) {
    typename F::vec column[vecs];
#pragma GCC unroll 4
    for (int c = 0; c < vecs; ++c) __builtin_prefetch(b + 6 * b_stride + c * F::lanes);
#pragma GCC unroll 4
    for (int c = 0; c < vecs; ++c) column[c] = F::load(b + c * F::lanes);
#pragma GCC unroll 6
    for (int r = 0; r < group_rows; ++r) {
      const typename F::vec row = F::broadcast(a + r * a_row + i * a_step);
#pragma GCC unroll 4
      for (int c = 0; c < vecs; ++c) block.sum[r][c] = F::dot(row, column[c], block.sum[r][c]);
    }
  }
}

/// Scores of 6 rows against `vecs` vectors of keys of a packed panel. row_max, where not null,
/// takes part in the maximum of each row, lane by lane; NaN scores are left out of it (the weights'
/// sum will show them).
template <class F, int vecs>
void score_block(const typename F::unit* q, std::int64_t d_units, const typename F::unit* panel,
                 typename F::real* s, std::int64_t s_stride, typename F::real* row_max) {
  Block<F, vecs> block{};
  multiply<F, vecs>(block, q, d_units, 1, panel, F::block_vecs * F::lanes, d_units);
#pragma GCC unroll 6
  for (int r = 0; r < group_rows; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < vecs; ++c) F::store(s + r * s_stride + c * F::lanes, block.sum[r][c]);
  }
  if (!row_max) return;
#pragma GCC unroll 6
  for (int r = 0; r < group_rows; ++r) {
    typename F::vec most = F::load(row_max + r * F::lanes);
#pragma GCC unroll 4
    for (int c = 0; c < vecs; ++c) most = F::max(block.sum[r][c], most);
    F::store(row_max + r * F::lanes, most);
  }
}

/// The same for a number of vectors that is known at run time.
template <class F>
void score_columns(int vecs, const typename F::unit* q, std::int64_t d_units,
                   const typename F::unit* panel, typename F::real* s, std::int64_t s_stride,
                   typename F::real* row_max) {
  if (vecs == F::block_vecs) {
    score_block<F, F::block_vecs>(q, d_units, panel, s, s_stride, row_max);
  } else if (vecs == 1) {
    score_block<F, 1>(q, d_units, panel, s, s_stride, row_max);
  } else if constexpr (F::block_vecs == 4) {
    if (vecs == 2) {
      score_block<F, 2>(q, d_units, panel, s, s_stride, row_max);
    } else {
      score_block<F, 3>(q, d_units, panel, s, s_stride, row_max);
    }
  }
}

/// Adds the weights of 6 rows times `steps` units of V rows to `vecs` vectors of output columns.
template <class F, int vecs>
void output_block(const typename F::unit* p, std::int64_t p_stride, const typename F::unit* v,
                  std::int64_t v_stride, std::int64_t steps, typename F::real* o,
                  std::int64_t o_stride, const typename F::real* alpha) {
  Block<F, vecs> block;
#pragma GCC unroll 6
  for (int r = 0; r < group_rows; ++r) {
    const typename F::vec factor = F::set1(alpha[r]);
#pragma GCC unroll 4
    for (int c = 0; c < vecs; ++c) {
      block.sum[r][c] = F::load(o + r * o_stride + c * F::lanes) * factor;
    }
  }
  multiply<F, vecs>(block, p, p_stride, 1, v, v_stride, steps);
#pragma GCC unroll 6
  for (int r = 0; r < group_rows; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < vecs; ++c) F::store(o + r * o_stride + c * F::lanes, block.sum[r][c]);
  }
}

/// Columns of V and O go in panels as wide as a register block. Five vectors go as 3 + 2: a block
/// of one would wait for its own sums.
template <class F>
constexpr int panel_vecs(std::int64_t vecs_left) {
  constexpr int most = F::block_vecs;
  if (vecs_left == most + 1) return (most + 2) / 2;
  return vecs_left < most ? int(vecs_left) : most;
}

/// V of one head: packed panels [keys][panel columns] one after the other, or the caller's rows.
template <class Unit>
struct Values {
  const Unit* data = nullptr;
  std::int64_t panel_rows = 0;  // unit rows of a panel; 0 = in place
  std::int64_t row_stride = 0;  // in place only
};

/// Where unit row `row` of the panel at `column` starts, and how far the next row is.
template <class Unit>
inline const Unit* value_row(const Values<Unit>& v, std::int64_t row, std::int64_t column,
                             std::int64_t panel_columns, std::int64_t* stride) {
  *stride = v.panel_rows ? panel_columns : v.row_stride;
  return v.data + (v.panel_rows ? column * v.panel_rows : column) + row * *stride;
}

/// All output columns of 6 rows, panel by panel: O = alpha O + P V over unit rows
/// [first_row, first_row + steps) of V. `columns` is a multiple of F::lanes.
template <class F>
void output_rows(const typename F::unit* p, std::int64_t p_stride,
                 const Values<typename F::unit>& values, std::int64_t first_row, std::int64_t steps,
                 typename F::real* o, std::int64_t columns, const typename F::real* alpha) {
  for (std::int64_t column = 0; column < columns;) {
    const int vecs = panel_vecs<F>((columns - column) / F::lanes);
    std::int64_t v_stride;
    const auto* v = value_row(values, first_row, column, vecs * F::lanes, &v_stride);
    if (vecs == 1) {
      output_block<F, 1>(p, p_stride, v, v_stride, steps, o + column, columns, alpha);
    } else if (vecs == 2) {
      output_block<F, 2>(p, p_stride, v, v_stride, steps, o + column, columns, alpha);
    } else if constexpr (F::block_vecs == 4) {
      if (vecs == 3) {
        output_block<F, 3>(p, p_stride, v, v_stride, steps, o + column, columns, alpha);
      } else {
        output_block<F, 4>(p, p_stride, v, v_stride, steps, o + column, columns, alpha);
      }
    }
    column += vecs * F::lanes;
  }
}
