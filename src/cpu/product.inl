// The backward's five products, all of one form: 6 rows x up to 4 vectors of sums in registers.
//   S = Q K^T   dP = dO V^T   dQ += dS K   dV += P^T dO   dK += dS^T Q

/// The left operand: element (r, i) lies at r * row + i * step.
template <class Real>
struct LeftRows {
  const Real* data;
  std::int64_t row, step;
};

template <class F, int vecs, bool add>
void product_block(const LeftRows<typename F::real>& a, const typename F::real* b,
                   std::int64_t b_stride, std::int64_t steps, typename F::real* out,
                   std::int64_t out_stride) {
  Block<F, vecs> block{};
  if constexpr (add) {
#pragma GCC unroll 6
    for (int r = 0; r < group_rows; ++r) {
#pragma GCC unroll 4
      for (int c = 0; c < vecs; ++c) {
        block.sum[r][c] = F::load(out + r * out_stride + c * F::lanes);
      }
    }
  }
  multiply<F, vecs>(block, a.data, a.row, a.step, b, b_stride, steps);
#pragma GCC unroll 6
  for (int r = 0; r < group_rows; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < vecs; ++c) F::store(out + r * out_stride + c * F::lanes, block.sum[r][c]);
  }
}

/// The same for a number of vectors that is known at run time, 1 to F::block_vecs.
template <class F, bool add>
void product(int vecs, const LeftRows<typename F::real>& a, const typename F::real* b,
             std::int64_t b_stride, std::int64_t steps, typename F::real* out,
             std::int64_t out_stride) {
  if (vecs == F::block_vecs) {
    product_block<F, F::block_vecs, add>(a, b, b_stride, steps, out, out_stride);
  } else if (vecs == 1) {
    product_block<F, 1, add>(a, b, b_stride, steps, out, out_stride);
  } else if constexpr (F::block_vecs == 4) {
    if (vecs == 2) {
      product_block<F, 2, add>(a, b, b_stride, steps, out, out_stride);
    } else {
      product_block<F, 3, add>(a, b, b_stride, steps, out, out_stride);
    }
  }
}

/// 6 rows of out [6][columns] += a b, with b [steps][columns]; columns a multiple of F::lanes.
template <class F>
void add_product(const LeftRows<typename F::real>& a, const typename F::real* b, std::int64_t steps,
                 typename F::real* out, std::int64_t columns) {
  for (std::int64_t column = 0; column < columns;) {
    const int vecs = panel_vecs<F>((columns - column) / F::lanes);
    product<F, true>(vecs, a, b + column, columns, steps, out + column, columns);
    column += vecs * F::lanes;
  }
}

/// Which pairs a product leaves out: those whose flag has one of the bits; element (r, i) lies at
/// r * row + i * step.
struct LeftOut {
  const std::uint8_t* flags;
  std::int64_t row, step;
  std::uint8_t bits;
};

/// The slow path where an operand is not finite: the very sums of add_product, in its order,
/// without the pairs that take no part (0 * NaN would be NaN).
template <class F>
void add_isolated(const LeftRows<typename F::real>& a, const LeftOut& out_of,
                  const typename F::real* b, std::int64_t steps, typename F::real* out,
                  std::int64_t columns) {
  for (int r = 0; r < group_rows; ++r) {
    for (std::int64_t c = 0; c < columns; c += F::lanes) {
      typename F::vec sum = F::load(out + r * columns + c);
      for (std::int64_t i = 0; i < steps; ++i) {
        if (out_of.flags[r * out_of.row + i * out_of.step] & out_of.bits) continue;
        sum = F::dot(F::broadcast(a.data + r * a.row + i * a.step), F::load(b + i * columns + c),
                     sum);
      }
      F::store(out + r * columns + c, sum);
    }
  }
}
