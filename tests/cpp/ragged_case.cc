#include "ragged_case.h"

#include <algorithm>
#include <numeric>

namespace onepass::cpu_test {
namespace {

std::int64_t sum(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

std::int64_t longest(const std::vector<std::int64_t>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

const std::vector<std::int64_t>& rooms(const Ragged& r) {
  return r.rooms.empty() ? r.k_lens : r.rooms;
}

std::int64_t rows_of(bool packed, const std::vector<std::int64_t>& lens) {
  return packed ? sum(lens) : longest(lens) * static_cast<std::int64_t>(lens.size());
}

std::vector<std::int64_t> firsts(bool packed, const std::vector<std::int64_t>& lens) {
  std::vector<std::int64_t> first{0};
  for (const std::int64_t len : lens)
    first.push_back(first.back() + (packed ? len : longest(lens)));
  return first;
}

TensorView rows_view(Buffer& buffer, bool packed, std::int64_t b, std::int64_t rows,
                     std::int64_t heads, std::int64_t width) {
  if (packed) return TensorView(buffer.data(), buffer.dtype(), {rows, heads, width});
  return TensorView(buffer.data(), buffer.dtype(), {b, b == 0 ? 0 : rows / b, heads, width});
}

}  // namespace

RaggedCall::RaggedCall(const Ragged& given, unsigned seed)
    : r(given),
      q(r.dtype, rows_of(r.packed_q, r.q_lens) * r.h_q * r.d),
      k(r.dtype, rows_of(r.packed_k, rooms(r)) * r.h_kv * r.d),
      v(r.dtype, rows_of(r.packed_k, rooms(r)) * r.h_kv * r.d_v),
      o(r.dtype, rows_of(r.packed_q, r.q_lens) * r.h_q * r.d_v),
      lse(r.dtype == DType::float64 ? DType::float64 : DType::float32,
          rows_of(r.packed_q, r.q_lens) * r.h_q),
      q_first(firsts(r.packed_q, r.q_lens)),
      k_first(firsts(r.packed_k, rooms(r))),
      options(r.options),
      q_rows_(rows_of(r.packed_q, r.q_lens)),
      k_rows_(rows_of(r.packed_k, rooms(r))),
      longest_q_(longest(r.q_lens)),
      room_k_(longest(rooms(r))) {
  const std::int64_t b = sequences();
  q_view = rows_view(q, r.packed_q, b, q_rows_, r.h_q, r.d);
  o_view = rows_view(o, r.packed_q, b, q_rows_, r.h_q, r.d_v);
  k_view = rows_view(k, r.packed_k, b, k_rows_, r.h_kv, r.d);
  v_view = rows_view(v, r.packed_k, b, k_rows_, r.h_kv, r.d_v);
  options.lse = r.packed_q ? TensorView(lse.data(), lse.dtype(), {r.h_q, q_rows_})
                           : TensorView(lse.data(), lse.dtype(), {b, r.h_q, longest_q_});
  if (r.packed_q) options.cu_seqlens_q = integers(q_first);
  if (r.packed_k) options.cu_seqlens_k = integers(k_first);
  if (r.use_lens || !r.rooms.empty() || !r.packed_k) options.seqused_k = integers(r.k_lens);
  std::uint32_t state = seed;
  for (Buffer* buffer : {&q, &k, &v}) {
    const auto count =
        static_cast<std::int64_t>(buffer->bytes().size()) / size_bytes(buffer->dtype());
    for (std::int64_t i = 0; i < count; ++i) {
      state = 1664525U * state + 1013904223U;
      buffer->set(i, static_cast<double>(state >> 8) / (1 << 23) - 1.0);
    }
  }
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (std::size_t i = 0; i < r.k_lens.size(); ++i) {
    for (std::int64_t row = k_first[i] + r.k_lens[i]; row < k_first[i + 1]; ++row) {
      for (std::int64_t e = 0; e < r.h_kv * r.d; ++e) k.set(row * r.h_kv * r.d + e, nan);
      for (std::int64_t e = 0; e < r.h_kv * r.d_v; ++e) v.set(row * r.h_kv * r.d_v + e, nan);
    }
  }
}

TensorView RaggedCall::integers(const std::vector<std::int64_t>& values) {
  const auto count = static_cast<std::int64_t>(values.size());
  if (r.index_dtype == DType::int64) {
    wide_.push_back(values);
    return TensorView(wide_.back().data(), DType::int64, {count});
  }
  narrow_.emplace_back(values.begin(), values.end());
  return TensorView(narrow_.back().data(), DType::int32, {count});
}

void RaggedCall::run(int threads) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (std::int64_t i = 0; i < o_view.elements(); ++i) o.set(i, nan);
  for (std::int64_t i = 0; i < options.lse.elements(); ++i) lse.set(i, nan);
  attention(q_view, k_view, v_view, o_view, options, {.threads = threads});
}

reference::Tensor RaggedCall::sequence_of(const Buffer& from, std::int64_t b, std::int64_t first,
                                          std::int64_t rows, std::int64_t heads,
                                          std::int64_t width) const {
  // At place b of a batch, so that expressions see the right b.
  reference::Tensor tensor{{b + 1, rows, heads, width}, {}};
  tensor.data.resize(static_cast<std::size_t>((b + 1) * rows * heads * width));
  for (std::int64_t i = 0; i < rows * heads * width; ++i) {
    tensor.data[static_cast<std::size_t>(b * rows * heads * width + i)] =
        from.get(first * heads * width + i);
  }
  return tensor;
}

std::vector<double> RaggedCall::result(std::int64_t b) const {
  const auto at = static_cast<std::size_t>(b);
  std::vector<double> all;
  for (std::int64_t row = 0; row < r.q_lens[at]; ++row) {
    for (std::int64_t e = 0; e < r.h_q * r.d_v; ++e) {
      all.push_back(o.get((q_first[at] + row) * r.h_q * r.d_v + e));
    }
  }
  for (std::int64_t h = 0; h < r.h_q; ++h) {
    for (std::int64_t row = 0; row < r.q_lens[at]; ++row) {
      all.push_back(lse.get(r.packed_q ? h * q_rows_ + q_first[at] + row
                                       : (b * r.h_q + h) * longest_q_ + row));
    }
  }
  return all;
}

RaggedCall::Error RaggedCall::error() {
  Error worst;
  const auto note = [](double& so_far, double difference) {
    if (!(difference <= so_far)) so_far = difference;  // NaN counts
  };
  for (std::int64_t b = 0; b < sequences(); ++b) {
    const auto at = static_cast<std::size_t>(b);
    const auto q_b = sequence_of(q, b, q_first[at], r.q_lens[at], r.h_q, r.d);
    const auto k_b = sequence_of(k, b, k_first[at], r.k_lens[at], r.h_kv, r.d);
    const auto v_b = sequence_of(v, b, k_first[at], r.k_lens[at], r.h_kv, r.d_v);
    const reference::Options reference_options =
        r.reference ? r.reference(b) : reference::Options{};
    const reference::Attention reference(q_b, k_b, v_b, reference_options);
    const std::vector<double> got = result(b);
    const std::int64_t outputs = r.q_lens[at] * r.h_q * r.d_v;
    for (std::int64_t h = 0; h < r.h_q; ++h) {
      for (std::int64_t row = 0; row < r.q_lens[at]; ++row) {
        const reference::Row want = reference.row(b, h, row);
        for (std::int64_t e = 0; e < r.d_v; ++e) {
          const double x = got[static_cast<std::size_t>((row * r.h_q + h) * r.d_v + e)];
          note(worst.o, std::abs(x - want.o[static_cast<std::size_t>(e)]));
        }
        const double l = got[static_cast<std::size_t>(outputs + h * r.q_lens[at] + row)];
        if (l != want.lse) note(worst.lse, std::abs(l - want.lse));
      }
    }
  }
  return worst;
}

}  // namespace onepass::cpu_test
