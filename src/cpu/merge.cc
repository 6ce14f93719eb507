// merge(): two partial attentions over disjoint sets of keys become the one over both.
//   m = max(lse, lse_other),  w = exp(lse - m),  o = (w o + w_other o_other) / (w + w_other)
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/check.h"
#include "cpu/forward.h"
#include "cpu/threads.h"
#include "onepass/attention.h"

namespace onepass {
namespace cpu {
namespace {

#include "cpu/convert.inl"

/// Rows that one work item takes; a row is one (b, s, h).
constexpr std::int64_t rows_per_item = 64;
constexpr std::int64_t chunk = 256;

template <class Real>
void read_chunk(const TensorView& o, std::int64_t at, std::int64_t count, Real* to) {
  const std::int64_t stride = o.strides[3];
  const void* from = static_cast<const std::byte*>(o.data) + at * size_bytes(o.dtype);
  switch (o.dtype) {
    case DType::float64:
      return widen_row<double>(from, stride, count, Real{1}, to, count);
    case DType::float32:
      return widen_row<float>(from, stride, count, Real{1}, to, count);
    case DType::bfloat16:
      return widen_row<Brain>(from, stride, count, Real{1}, to, count);
    default:
      return widen_row<Half>(from, stride, count, Real{1}, to, count);
  }
}

template <class Real>
void write_chunk(const Real* from, std::int64_t count, const TensorView& o, std::int64_t at) {
  const std::int64_t stride = o.strides[3];
  void* to = static_cast<std::byte*>(o.data) + at * size_bytes(o.dtype);
  switch (o.dtype) {
    case DType::float64:
      return narrow_row<double>(from, count, to, stride);
    case DType::float32:
      return narrow_row<float>(from, count, to, stride);
    case DType::bfloat16:
      return narrow_row<Brain>(from, count, to, stride);
    default:
      return narrow_row<Half>(from, count, to, stride);
  }
}

template <class Real>
Real read_lse(const TensorView& lse, std::int64_t at) {
  return lse.dtype == DType::float64 ? static_cast<Real>(static_cast<const double*>(lse.data)[at])
                                     : static_cast<Real>(static_cast<const float*>(lse.data)[at]);
}

template <class Real>
void merge_row(const TensorView& o, const TensorView& lse, const TensorView& o_other,
               const TensorView& lse_other, std::int64_t b, std::int64_t s, std::int64_t h) {
  const auto offset = [](const TensorView& view, std::int64_t i, std::int64_t j, std::int64_t k) {
    return i * view.strides[0] + j * view.strides[1] + k * view.strides[2];
  };
  constexpr Real nothing = -std::numeric_limits<Real>::infinity();
  const std::int64_t lse_at = offset(lse, b, h, s);
  const Real mine = read_lse<Real>(lse, lse_at);
  const Real other = read_lse<Real>(lse_other, offset(lse_other, b, h, s));
  if (other == nothing) return;  // neutral, to the bit
  const Real most = mine > other ? mine : other;
  // Equal infinities have weight 1 each, where their difference would be NaN.
  const Real w_mine = mine == most ? Real{1} : std::exp(mine - most);
  const Real w_other = other == most ? Real{1} : std::exp(other - most);
  const Real sum = w_mine + w_other;
  const Real f_mine = w_mine / sum, f_other = w_other / sum;
  const std::int64_t o_at = offset(o, b, s, h), other_at = offset(o_other, b, s, h);
  for (std::int64_t c = 0; c < o.shape[3]; c += chunk) {
    const std::int64_t count = std::min(chunk, o.shape[3] - c);
    Real x[chunk], y[chunk];
    read_chunk(o_other, other_at + c * o_other.strides[3], count, y);
    if (mine != nothing) {  // else what o holds is no result at all
      read_chunk(o, o_at + c * o.strides[3], count, x);
      for (std::int64_t i = 0; i < count; ++i) y[i] = f_mine * x[i] + f_other * y[i];
    }
    write_chunk(y, count, o, o_at + c * o.strides[3]);
  }
  const Real merged = mine == nothing ? other : most + std::log(sum);
  if (lse.dtype == DType::float64) {
    static_cast<double*>(lse.data)[lse_at] = merged;
  } else {
    static_cast<float*>(lse.data)[lse_at] = static_cast<float>(merged);
  }
}

Status check_merge(const TensorView& o, const TensorView& lse, const TensorView& o_other,
                   const TensorView& lse_other) {
  struct Named {
    const char* name;
    const TensorView& view;
    bool is_lse;
  };
  const Named tensors[] = {{"o", o, false},
                           {"lse", lse, true},
                           {"o_other", o_other, false},
                           {"lse_other", lse_other, true}};
  for (const Named& t : tensors) {
    const char* dims = t.is_lse ? "(b, h, s)" : "(b, s, h, d_v)";
    if (Status s = check::tensor(t.name, t.view, t.is_lse ? 3 : 4, dims); !s.ok()) return s;
    if (Status s =
            t.is_lse
                ? check::dtype(t.name, t.view, {DType::float32, DType::float64}, "convert it")
                : check::dtype(t.name, t.view,
                               {DType::float64, DType::float32, DType::bfloat16, DType::float16},
                               "convert it");
        !s.ok()) {
      return s;
    }
    const std::int64_t b = o.shape[0], n = o.shape[1], h = o.shape[2];
    if (Status s = t.is_lse ? check::shape(t.name, t.view, {b, h, n}, "(b, h, s) of o")
                            : check::shape(t.name, t.view, {b, n, h, o.shape[3]}, "o's shape");
        !s.ok()) {
      return s;
    }
    if (Status s = check::memory(t.name, t.view); !s.ok()) return s;
  }
  if (Status s = check::writable("o", o); !s.ok()) return s;
  return check::writable("lse", lse);
}

}  // namespace
}  // namespace cpu

void merge(const TensorView& o, const TensorView& lse, const TensorView& o_other,
           const TensorView& lse_other, const Exec& exec) {
  if (Status s = cpu::check_merge(o, lse, o_other, lse_other); !s.ok()) throw Error(s);
  if (exec.threads < 0) {
    throw Error(Status::invalid("threads: " + std::to_string(exec.threads) +
                                "; 0 (OMP_NUM_THREADS or every core) or more is allowed; pass 0 or "
                                "a count"));
  }
  const std::int64_t s = o.shape[1], h = o.shape[2];
  const std::int64_t rows = o.shape[0] * s * h;
  const bool wide = lse.dtype == DType::float64 || o.dtype == DType::float64;
  const auto item = [&](std::int64_t first, int) {
    const std::int64_t end = std::min((first + 1) * cpu::rows_per_item, rows);
    for (std::int64_t row = first * cpu::rows_per_item; row < end; ++row) {
      const std::int64_t b_at = row / (s * h), s_at = row / h % s, h_at = row % h;
      if (wide) {
        cpu::merge_row<double>(o, lse, o_other, lse_other, b_at, s_at, h_at);
      } else {
        cpu::merge_row<float>(o, lse, o_other, lse_other, b_at, s_at, h_at);
      }
    }
  };
  const std::int64_t items = (rows + cpu::rows_per_item - 1) / cpu::rows_per_item;
  // Below some 10^5 elements waking a thread costs more than it saves.
  const int threads = rows * o.shape[3] < 100000 ? 1 : cpu::usable_threads(exec.threads);
  cpu::parallel_for(threads, items, item);
}

}  // namespace onepass
