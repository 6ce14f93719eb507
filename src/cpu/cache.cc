#include "cpu/cache.h"

#include <cstring>

#include "core/check.h"
#include "cpu/forward.h"
#include "cpu/threads.h"

namespace onepass::cpu {
namespace {

#include "cpu/convert.inl"

/// A row of one head as base and stride.
struct HeadRow {
  std::byte* data;
  DType dtype;
  std::int64_t stride;  // in elements
};

HeadRow row_of(const TensorView& t, std::int64_t b, std::int64_t s, std::int64_t h) {
  const std::int64_t at = b * t.strides[0] + s * t.strides[1] + h * t.strides[2];
  return {static_cast<std::byte*>(t.data) + at * size_bytes(t.dtype), t.dtype, t.strides[3]};
}

HeadRow slot_of(const TensorView& t, const Problem& p, const Sequence& at, std::int64_t key,
                std::int64_t h) {
  const std::int64_t size = p.cache.page_size;
  if (size == 0) return row_of(t, at.k_batch, key, h);
  return row_of(t, at.pages[key / size * at.page_stride], key % size, h);
}

template <class Real>
Real read(const HeadRow& row, std::int64_t i) {
  const std::byte* at = row.data + i * row.stride * size_bytes(row.dtype);
  Real value;
  switch (row.dtype) {
    case DType::float64:
      widen_row<double>(at, 1, 1, Real{1}, &value, 1);
      break;
    case DType::float32:
      widen_row<float>(at, 1, 1, Real{1}, &value, 1);
      break;
    case DType::bfloat16:
      widen_row<Brain>(at, 1, 1, Real{1}, &value, 1);
      break;
    default:
      widen_row<Half>(at, 1, 1, Real{1}, &value, 1);
  }
  return value;
}

template <class Real>
void write(const HeadRow& row, std::int64_t i, Real value) {
  output_row(&value, 1, row.data + i * row.stride * size_bytes(row.dtype), row.dtype, 1);
}

/// The very bits.
void copy_row(const HeadRow& from, const HeadRow& to, std::int64_t first, std::int64_t end) {
  const std::int64_t bytes = size_bytes(from.dtype);
  if (from.stride == 1 && to.stride == 1) {
    if (first < end) {
      std::memcpy(to.data + first * bytes, from.data + first * bytes,
                  static_cast<std::size_t>((end - first) * bytes));
    }
    return;
  }
  for (std::int64_t i = first; i < end; ++i) {
    std::memcpy(to.data + i * to.stride * bytes, from.data + i * from.stride * bytes,
                static_cast<std::size_t>(bytes));
  }
}

/// The first rotary_dim elements as pairs turned by the position's angles, the rest copied.
template <class Real>
void rotate_row(const CacheUse& c, const HeadRow& from, const HeadRow& to, std::int64_t position,
                std::int64_t d) {
  const std::int64_t pairs = c.cos.shape[1];
  const auto table = [&](const TensorView& t) {
    return HeadRow{static_cast<std::byte*>(t.data) + position * t.strides[0] * size_bytes(t.dtype),
                   t.dtype, t.strides[1]};
  };
  const HeadRow cos = table(c.cos), sin = table(c.sin);
  for (std::int64_t i = 0; i < pairs; ++i) {
    const std::int64_t one = c.interleaved ? 2 * i : i;
    const std::int64_t other = c.interleaved ? 2 * i + 1 : i + pairs;
    const Real x = read<Real>(from, one), y = read<Real>(from, other);
    const Real cosine = read<Real>(cos, i), sine = read<Real>(sin, i);
    write(to, one, x * cosine - y * sine);
    write(to, other, x * sine + y * cosine);
  }
  copy_row(from, to, 2 * pairs, d);
}

void put_row(const Problem& p, const HeadRow& from, const HeadRow& to, std::int64_t position,
             std::int64_t d) {
  if (!p.cache.cos.given()) return copy_row(from, to, 0, d);
  if (p.dtype == DType::float64) return rotate_row<double>(p.cache, from, to, position, d);
  rotate_row<float>(p.cache, from, to, position, d);
}

// Rows of one token that pay for a thread.
constexpr std::int64_t elements_per_thread = 1 << 16;

}  // namespace

std::int64_t rotated_q_bytes(const Problem& p) {
  if (!p.cache.cos.given()) return 0;
  return (p.b * p.s_q * p.h_q * p.d * size_bytes(p.dtype) + 63) / 64 * 64;
}

void update_cache(const Problem& p, std::byte* rotated_q, int threads) {
  const CacheUse& c = p.cache;
  const auto append = [&](std::int64_t item, int) {
    const std::int64_t b = item / c.s_new, i = item % c.s_new;
    const Sequence at = p.sequence(b);
    const std::int64_t key = at.s_kv - c.s_new + i;
    const std::int64_t position = p.k_start.at(b) + key;
    for (std::int64_t h = 0; h < p.h_kv; ++h) {
      put_row(p, row_of(c.k_new, b, i, h), slot_of(p.k, p, at, key, h), position, p.d);
      copy_row(row_of(c.v_new, b, i, h), slot_of(p.v, p, at, key, h), 0, p.d_v);
    }
  };
  const auto workers = [&](std::int64_t elements) {
    return elements < elements_per_thread ? 1 : threads;
  };
  parallel_for(workers(p.b * c.s_new * p.h_kv * (p.d + p.d_v)), p.b * c.s_new, append);
  if (!c.cos.given()) return;
  const TensorView rotated(rotated_q, p.dtype, {p.b, p.s_q, p.h_q, p.d});
  const auto rotate = [&](std::int64_t item, int) {
    const std::int64_t b = item / p.s_q, i = item % p.s_q;
    const std::int64_t position = p.scope(b, 0).q_start + i;
    for (std::int64_t h = 0; h < p.h_q; ++h) {
      put_row(p, row_of(p.q, b, i, h), row_of(rotated, b, i, h), position, p.d);
    }
  };
  parallel_for(workers(p.b * p.s_q * p.h_q * p.d), p.b * p.s_q, rotate);
}

}  // namespace onepass::cpu
