#include "cache_case.h"

#include <algorithm>
#include <cmath>

namespace onepass::cpu_test {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::int64_t count_of(const Buffer& buffer) {
  return static_cast<std::int64_t>(buffer.bytes().size()) / size_bytes(buffer.dtype());
}

std::int64_t units(const CacheCase& c) {  // pages or rows, with spare ones
  const auto b = static_cast<std::int64_t>(c.lens.size());
  return (c.page_size == 0 ? b : b * (c.capacity / c.page_size)) + (c.shuffled ? 3 : 0);
}

std::int64_t rows_of(const CacheCase& c) {
  return units(c) * (c.page_size == 0 ? c.capacity : c.page_size);
}

double ulps(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return 0x1p-52;
    case DType::float32:
      return 0x1p-23;
    case DType::bfloat16:
      return 0x1p-8;
    default:
      return 0x1p-10;
  }
}

}  // namespace

CacheCall::CacheCall(const CacheCase& given, unsigned seed)
    : c(given),
      q(c.dtype, sequences() * c.s_q * c.h_q * c.d),
      k(c.dtype, rows_of(c) * c.h_kv * c.d),
      v(c.dtype, rows_of(c) * c.h_kv * c.d_v),
      k_new(c.dtype, sequences() * c.s_new * c.h_kv * c.d),
      v_new(c.dtype, sequences() * c.s_new * c.h_kv * c.d_v),
      o(c.dtype, sequences() * c.s_q * c.h_q * c.d_v),
      lse(c.dtype == DType::float64 ? DType::float64 : DType::float32, sequences() * c.h_q * c.s_q),
      cos(c.dtype == DType::float64 ? DType::float64 : DType::float32, c.capacity * c.rotary_pairs),
      sin(cos.dtype(), c.capacity * c.rotary_pairs),
      seqlens(c.lens.begin(), c.lens.end()),
      k_before_(k),
      v_before_(v) {
  const std::int64_t b = sequences();
  const std::int64_t blocks = c.page_size == 0 ? 1 : c.capacity / c.page_size;
  for (std::int64_t i = 0; i < b * blocks; ++i) table.push_back(static_cast<std::int32_t>(i));
  std::uint32_t state = seed;
  const auto next = [&state] {
    state = 1664525U * state + 1013904223U;
    return static_cast<double>(state >> 8) / (1 << 23) - 1.0;
  };
  if (c.shuffled) {
    for (std::int32_t& unit : table) unit = static_cast<std::int32_t>(units(c)) - 1 - unit;
    for (std::size_t i = table.size(); i > 1; --i) {
      std::swap(table[i - 1],
                table[static_cast<std::size_t>(std::abs(next()) * 0.999 * static_cast<double>(i))]);
    }
  }
  for (Buffer* buffer : {&q, &k_new, &v_new}) {
    for (std::int64_t i = 0; i < count_of(*buffer); ++i) buffer->set(i, next());
  }
  for (Buffer* buffer : {&k, &v}) {
    for (std::int64_t i = 0; i < count_of(*buffer); ++i) buffer->set(i, nan);
  }
  for (std::int64_t s = 0; s < b; ++s) {
    for (std::int64_t key = 0; key < c.lens[static_cast<std::size_t>(s)]; ++key) {
      if (key >= c.capacity) break;  // a length that is to be refused
      const std::int64_t at = slot(s, key) * c.h_kv;
      for (std::int64_t e = 0; e < c.h_kv * c.d; ++e) k.set(at * c.d + e, next());
      for (std::int64_t e = 0; e < c.h_kv * c.d_v; ++e) v.set(at * c.d_v + e, next());
    }
  }
  for (std::int64_t i = 0; i < c.capacity * c.rotary_pairs; ++i) {
    const double angle = static_cast<double>(i / c.rotary_pairs) *
                         std::pow(0.3, static_cast<double>(i % c.rotary_pairs));
    cos.set(i, std::cos(angle)), sin.set(i, std::sin(angle));
  }
  k_before_ = k, v_before_ = v;
  q_view = TensorView(q.data(), c.dtype, {b, c.s_q, c.h_q, c.d});
  o_view = TensorView(o.data(), c.dtype, {b, c.s_q, c.h_q, c.d_v});
  const std::int64_t size = c.page_size == 0 ? c.capacity : c.page_size;
  cache.k = TensorView(k.data(), c.dtype, {units(c), size, c.h_kv, c.d});
  cache.v = TensorView(v.data(), c.dtype, {units(c), size, c.h_kv, c.d_v});
  cache.seqlens = TensorView(seqlens.data(), DType::int32, {b});
  if (c.page_size > 0) cache.block_table = TensorView(table.data(), DType::int32, {b, blocks});
  if (c.page_size == 0 && c.shuffled) {
    cache.batch_idx = TensorView(table.data(), DType::int32, {b});
  }
  if (c.s_new > 0) {
    cache.k_new = TensorView(k_new.data(), c.dtype, {b, c.s_new, c.h_kv, c.d});
    cache.v_new = TensorView(v_new.data(), c.dtype, {b, c.s_new, c.h_kv, c.d_v});
  }
  if (c.rotary_pairs > 0) {
    cache.rotary.cos = TensorView(cos.data(), cos.dtype(), {c.capacity, c.rotary_pairs});
    cache.rotary.sin = TensorView(sin.data(), sin.dtype(), {c.capacity, c.rotary_pairs});
    cache.rotary.interleaved = c.interleaved;
  }
  options.mask = c.mask, options.score = c.score;
  options.lse = TensorView(lse.data(), lse.dtype(), {b, c.h_q, c.s_q});
  restore();
}

std::int64_t CacheCall::slot(std::int64_t b, std::int64_t key) const {
  if (c.page_size == 0) return table[static_cast<std::size_t>(b)] * c.capacity + key;
  const std::int64_t block = b * (c.capacity / c.page_size) + key / c.page_size;
  return table[static_cast<std::size_t>(block)] * c.page_size + key % c.page_size;
}

void CacheCall::restore() {
  // Copied in place: the views point into these buffers.
  for (std::int64_t i = 0; i < count_of(k); ++i) k.set(i, k_before_.get(i));
  for (std::int64_t i = 0; i < count_of(v); ++i) v.set(i, v_before_.get(i));
  for (std::int64_t i = 0; i < count_of(o); ++i) o.set(i, nan);
  for (std::int64_t i = 0; i < count_of(lse); ++i) lse.set(i, nan);
}

void CacheCall::run(int threads) {
  restore();
  attention_kvcache(q_view, cache, o_view, options, {.threads = threads});
}

double CacheCall::rotated(const Buffer& from, std::int64_t row_at, std::int64_t i,
                          std::int64_t position) const {
  const std::int64_t pairs = c.rotary_pairs;
  if (i >= 2 * pairs) return from.get(row_at + i);
  const std::int64_t pair = c.interleaved ? i / 2 : i % pairs;
  const bool second = c.interleaved ? i % 2 == 1 : i >= pairs;
  const double x = from.get(row_at + (c.interleaved ? 2 * pair : pair));
  const double y = from.get(row_at + (c.interleaved ? 2 * pair + 1 : pair + pairs));
  const double cosine = cos.get(position * pairs + pair), sine = sin.get(position * pairs + pair);
  return second ? x * sine + y * cosine : x * cosine - y * sine;
}

double CacheCall::append_error() const {
  double worst = 0.0;
  const auto note = [&](double got, double want) {
    const double error = std::abs(got - want) / ulps(c.dtype);
    if (!(error <= worst)) worst = error;
  };
  for (std::int64_t b = 0; b < sequences(); ++b) {
    for (std::int64_t i = 0; i < c.s_new; ++i) {
      const std::int64_t key = c.lens[static_cast<std::size_t>(b)] + i;
      for (std::int64_t h = 0; h < c.h_kv; ++h) {
        const std::int64_t from = (b * c.s_new + i) * c.h_kv + h, to = slot(b, key) * c.h_kv + h;
        for (std::int64_t e = 0; e < c.d; ++e) {
          note(k.get(to * c.d + e), rotated(k_new, from * c.d, e, key));
        }
        for (std::int64_t e = 0; e < c.d_v; ++e) {
          if (v.get(to * c.d_v + e) != v_new.get(from * c.d_v + e)) note(nan, 0.0);
        }
      }
    }
  }
  return worst;
}

std::int64_t CacheCall::touched_slots() const {
  std::vector<bool> appended(static_cast<std::size_t>(rows_of(c)));
  for (std::int64_t b = 0; b < sequences(); ++b) {
    for (std::int64_t i = 0; i < c.s_new; ++i) {
      const std::int64_t key = c.lens[static_cast<std::size_t>(b)] + i;
      if (key < c.capacity) appended[static_cast<std::size_t>(slot(b, key))] = true;
    }
  }
  std::int64_t touched = 0;
  for (std::int64_t row = 0; row < rows_of(c); ++row) {
    if (appended[static_cast<std::size_t>(row)]) continue;
    const auto same = [&](const Buffer& now, const Buffer& before, std::int64_t width) {
      const auto bytes = static_cast<std::ptrdiff_t>(c.h_kv * width * size_bytes(c.dtype));
      const auto first = now.bytes().begin() + row * bytes;
      return std::equal(first, first + bytes, before.bytes().begin() + row * bytes);
    };
    touched += !same(k, k_before_, c.d) || !same(v, v_before_, c.d_v);
  }
  return touched;
}

CacheCall::Error CacheCall::error() const {
  Error worst;
  const auto note = [](double& so_far, double difference) {
    if (!(difference <= so_far)) so_far = difference;
  };
  for (std::int64_t b = 0; b < sequences(); ++b) {
    const std::int64_t s_kv = c.lens[static_cast<std::size_t>(b)] + c.s_new;
    const auto tensor = [&](std::int64_t rows, std::int64_t heads, std::int64_t width,
                            const auto& at) {
      // At place b of a batch, so that expressions see the right b.
      reference::Tensor made{{b + 1, rows, heads, width}, {}};
      made.data.resize(static_cast<std::size_t>((b + 1) * rows * heads * width));
      auto* out = made.data.data() + b * rows * heads * width;
      for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t h = 0; h < heads; ++h) {
          for (std::int64_t e = 0; e < width; ++e) *out++ = at(row, h, e);
        }
      }
      return made;
    };
    Buffer rounded(c.dtype, 1);
    const auto q_b = tensor(c.s_q, c.h_q, c.d, [&](auto row, auto h, auto e) {
      rounded.set(0, rotated(q, ((b * c.s_q + row) * c.h_q + h) * c.d, e, s_kv - c.s_q + row));
      return rounded.get(0);
    });
    const auto k_b = tensor(s_kv, c.h_kv, c.d, [&](auto row, auto h, auto e) {
      return k.get((slot(b, row) * c.h_kv + h) * c.d + e);
    });
    const auto v_b = tensor(s_kv, c.h_kv, c.d_v, [&](auto row, auto h, auto e) {
      return v.get((slot(b, row) * c.h_kv + h) * c.d_v + e);
    });
    const reference::Options reference_options{.mask = c.mask, .score = c.score};
    const reference::Attention reference(q_b, k_b, v_b, reference_options);
    for (std::int64_t h = 0; h < c.h_q; ++h) {
      for (std::int64_t row = 0; row < c.s_q; ++row) {
        const reference::Row want = reference.row(b, h, row);
        for (std::int64_t e = 0; e < c.d_v; ++e) {
          const double x = o.get(((b * c.s_q + row) * c.h_q + h) * c.d_v + e);
          note(worst.o, std::abs(x - want.o[static_cast<std::size_t>(e)]));
        }
        const double l = lse.get((b * c.h_q + h) * c.s_q + row);
        if (l != want.lse) note(worst.lse, std::abs(l - want.lse));
      }
    }
  }
  return worst;
}

}  // namespace onepass::cpu_test
