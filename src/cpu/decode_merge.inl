// A query head's rows from the parts of their chunks, in the order of the keys:
//   o = sum w o_c / sum w,   lse = M + ln sum w,   w = l_c e^(m_c - M)

template <class F>
void merge_parts(const DecodeCall& call, std::int64_t item, int) {
  using real = typename F::real;
  const ForwardCall& forward = call.forward;
  const std::int64_t b = item / forward.h_q, h = item % forward.h_q, h_kv = h / forward.group;
  const Sequence& at = forward.sequences[b].at;
  const std::int64_t chunks = (at.s_kv + chunk_keys - 1) / chunk_keys;
  real sink = -F::infinity;
  if (forward.sink.data) __builtin_memcpy(&sink, address(forward.sink, 0, 0, h), sizeof sink);
  for (std::int64_t i = 0; i < at.s_q; ++i) {
    const std::int64_t row = h % forward.group * at.s_q + i;
    const auto part = [&](std::int64_t chunk) {
      return reinterpret_cast<const real*>(call.parts(b, h_kv, chunk) +
                                           row * call.sizes.part_bytes);
    };
    double most = sink;
    for (std::int64_t c = 0; c < chunks; ++c) {
      const double m = used_max<F>(part(c)[0]);
      if (part(c)[1] != real{0} && m > most) most = m;
    }
    const auto weight = [&](double m) { return m == most ? 1.0 : __builtin_exp(m - most); };
    double sum = sink == -F::infinity ? 0.0 : weight(sink);
    for (std::int64_t c = 0; c < chunks; ++c) {
      if (part(c)[1] != real{0}) sum += part(c)[1] * weight(used_max<F>(part(c)[0]));
    }
    alignas(64) real o[decode_max_columns] = {};
    for (std::int64_t c = 0; c < chunks; ++c) {
      const real* from = part(c) + F::lanes;
      if (part(c)[1] == real{0}) continue;
      const real share = real(part(c)[1] * weight(used_max<F>(part(c)[0])) / sum);
      if (share == real{0}) continue;
      for (std::int64_t j = 0; j < forward.d_v; ++j) o[j] += share * from[j];
    }
    output_row(o, forward.d_v, address(forward.o, b, at.q_row + i, h), forward.o.dtype,
               forward.o.d);
    if (!forward.lse.data) continue;
    const real lse = sum == 0.0 ? -F::infinity : real(most + __builtin_log(sum));
    __builtin_memcpy(address(forward.lse, b, at.q_row + i, h), &lse, sizeof lse);
  }
}

template <class F>
constexpr DecodeKernels decode_kernels_of() {
  return {{.real_bytes = sizeof(typename F::real),
           .unit_bytes = sizeof(typename F::unit),
           .unit_elements = F::unit_elements,
           .lanes = F::lanes,
           .panel_keys = F::block_vecs * F::lanes},
          decode_item<F>,
          merge_parts<F>};
}
