// The ceiling: the register block's multiply-adds with every operand in a register.

template <class F>
double multiply_only(std::int64_t rounds, void* memory) {
  constexpr int vecs = F::block_vecs;
  Block<F, vecs> block;
  const typename F::vec a = F::load(memory);
  // Every sum starts apart: equal ones would be computed once.
#pragma GCC unroll 6
  for (int r = 0; r < group_rows; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < vecs; ++c) block.sum[r][c] = a * F::set1(typename F::real(r * vecs + c));
  }
  for (std::int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 6
    for (int r = 0; r < group_rows; ++r) {
#pragma GCC unroll 4
      for (int c = 0; c < vecs; ++c) block.sum[r][c] = F::dot(a, a, block.sum[r][c]);
    }
  }
  typename F::vec sum{};
  for (int r = 0; r < group_rows; ++r) {
    for (int c = 0; c < vecs; ++c) sum += block.sum[r][c];
  }
  F::store(memory, sum);
  return 2.0 * F::unit_elements * F::lanes * group_rows * vecs * double(rounds);
}
