#include "conformance/cache_call.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "conformance/options.h"
#include "onepass/kv_cache.h"
#include "reference/rotary.h"

namespace onepass::conformance {
namespace {

constexpr std::int64_t table_positions = 2048;

// Where the slots of each sequence lie among the rows of the cache: its pages,
// or whole caches.
class Places {
 public:
  explicit Places(const CacheCall& call)
      : call_(call),
        b_(call.call.k.shape[0]),
        capacity_(call.call.k.shape[1]),
        size_(call.page_size == 0 ? capacity_ : call.page_size),
        blocks_(size_ == 0 ? 0 : (capacity_ + size_ - 1) / size_) {
    if (call.page_size == 0) {
      for (const std::int64_t row : call.batch_idx) rows_ = std::max(rows_, row + 2);
      if (call.batch_idx.empty()) rows_ = b_;
      return;
    }
    rows_ = b_ * blocks_ + 3;  // some pages are nobody's
    // Steps of a number that shares no factor with the count visit every page
    // once.
    std::int64_t step = rows_ / 2 + 1;
    while (std::gcd(step, rows_) != 1) ++step;
    for (std::int64_t i = 0; i < b_ * blocks_; ++i) {
      table_.push_back(static_cast<double>((i + 1) * step % rows_));
    }
  }

  std::array<std::int64_t, 4> shape(const reference::Tensor& tensor) const {
    return {rows_, size_, tensor.shape[2], tensor.shape[3]};
  }

  // First element of a slot in a tensor of `shape`, row-major.
  std::size_t slot(const reference::Tensor& tensor, std::int64_t b, std::int64_t key) const {
    std::int64_t row = call_.batch_idx.empty() ? b : call_.batch_idx[static_cast<std::size_t>(b)];
    if (!table_.empty()) {
      row = static_cast<std::int64_t>(table_[static_cast<std::size_t>(b * blocks_ + key / size_)]);
    }
    return static_cast<std::size_t>((row * size_ + key % size_) * tensor.shape[2] *
                                    tensor.shape[3]);
  }

  const std::vector<double>& table() const { return table_; }
  std::array<std::int64_t, 2> table_shape() const { return {b_, blocks_}; }

  // Of every sequence, into the order of the memory; unused slots are NaN.
  std::vector<double> laid_out(const reference::Tensor& tensor) const {
    const auto [rows, size, h, d] = shape(tensor);
    std::vector<double> memory(static_cast<std::size_t>(rows * size * h * d),
                               std::numeric_limits<double>::quiet_NaN());
    for (std::int64_t b = 0; b < b_; ++b) {
      for (std::int64_t key = 0; key < call_.lengths[static_cast<std::size_t>(b)]; ++key) {
        const auto from = tensor.data.begin() + (b * capacity_ + key) * h * d;
        std::copy_n(from, h * d,
                    memory.begin() + static_cast<std::ptrdiff_t>(slot(tensor, b, key)));
      }
    }
    return memory;
  }

  // The reverse, every slot of every sequence.
  std::vector<double> by_sequence(const reference::Tensor& tensor,
                                  const std::vector<double>& memory) const {
    std::vector<double> values;
    const std::int64_t line = tensor.shape[2] * tensor.shape[3];
    for (std::int64_t b = 0; b < b_; ++b) {
      for (std::int64_t key = 0; key < capacity_; ++key) {
        const auto from = memory.begin() + static_cast<std::ptrdiff_t>(slot(tensor, b, key));
        values.insert(values.end(), from, from + line);
      }
    }
    return values;
  }

  // Whether the memory differs from what it was in the new slots only.
  bool rest_kept(const reference::Tensor& tensor, std::vector<double> before,
                 const std::vector<double>& after) const {
    const std::int64_t line = tensor.shape[2] * tensor.shape[3];
    for (std::int64_t b = 0; b < b_; ++b) {
      const std::int64_t first = call_.lengths[static_cast<std::size_t>(b)];
      for (std::int64_t key = first; key < std::min(first + call_.s_new(), capacity_); ++key) {
        const auto place = static_cast<std::ptrdiff_t>(slot(tensor, b, key));
        std::copy_n(after.begin() + place, line, before.begin() + place);
      }
    }
    return std::equal(before.begin(), before.end(), after.begin(), [](double x, double y) {
      return x == y || (std::isnan(x) && std::isnan(y));
    });
  }

 private:
  const CacheCall& call_;
  std::int64_t b_, capacity_, size_, blocks_, rows_ = 1;
  std::vector<double> table_;
};

void rotate_rows(const CacheCall& call, reference::Tensor& tensor, auto position) {
  const auto [b, s, h, d] = tensor.shape;
  for (std::int64_t line = 0; line < b * s * h; ++line) {
    const Angles at = angles(position(line / (s * h), line / h % s), call.rotary_pairs);
    const std::span<double> x(tensor.data.data() + line * d, static_cast<std::size_t>(d));
    reference::rotate(x, at.cos, at.sin, call.interleaved);
    for (double& value : x) value = rounded(call.call.dtype, value);
  }
}

}  // namespace

Angles angles(std::int64_t position, std::int64_t pairs) {
  Angles out;
  for (std::int64_t i = 0; i < pairs; ++i) {
    const double speed = std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(pairs));
    const double angle = static_cast<double>(position) * speed;
    out.cos.push_back(rounded(DType::float32, std::cos(angle)));
    out.sin.push_back(rounded(DType::float32, std::sin(angle)));
  }
  return out;
}

Call CacheCall::joined() const {
  Call out = call;
  for (const std::int64_t length : lengths) out.seqused_k.push_back(length + s_new());
  const reference::Attention positions = reference_of(out);
  reference::Tensor rotated = k_new;
  if (rotary_pairs > 0) {
    rotate_rows(*this, rotated, [&](std::int64_t b, std::int64_t i) {
      return positions.pair(b, 0, 0, lengths[static_cast<std::size_t>(b)] + i).k;
    });
    rotate_rows(*this, out.q,
                [&](std::int64_t b, std::int64_t row) { return positions.pair(b, 0, row, 0).q; });
  }
  using Appended = std::pair<reference::Tensor*, const reference::Tensor*>;
  for (const auto& [cache, added] : {Appended{&out.k, &rotated}, {&out.v, &v_new}}) {
    const std::int64_t line = cache->shape[2] * cache->shape[3];
    for (std::int64_t b = 0; b < cache->shape[0] && s_new() > 0; ++b) {
      const std::int64_t first = b * cache->shape[1] + lengths[static_cast<std::size_t>(b)];
      std::copy_n(added->data.begin() + b * s_new() * line, s_new() * line,
                  cache->data.begin() + first * line);
    }
  }
  return out;
}

std::string CacheCall::line() const {
  Call shown = call;
  shown.seqused_k = lengths;
  std::string text = shown.line() + " over a cache";
  if (page_size > 0) text += " of pages of " + std::to_string(page_size);
  if (s_new() > 0) text += ", " + std::to_string(s_new()) + " new";
  if (rotary_pairs > 0) text += ", rotary of " + std::to_string(2 * rotary_pairs);
  return text + " (cache " + name(cache_layout) + ")";
}

CacheAnswer run(const CacheCall& cached, int threads) {
  const Call& call = cached.call;
  const Places places(cached);
  const auto stored = [&](const reference::Tensor& tensor, Layout layout = Layout::seq_major) {
    Storage storage(call.dtype, tensor.shape, layout);
    storage.write(tensor.data);
    return storage;
  };
  const auto integers = [](DType dtype, const std::vector<std::int64_t>& values) {
    Storage storage(dtype, std::array{static_cast<std::int64_t>(values.size())});
    storage.write(std::vector<double>(values.begin(), values.end()));
    return storage;
  };
  Storage k(call.dtype, places.shape(call.k), cached.cache_layout);
  Storage v(call.dtype, places.shape(call.v), cached.cache_layout);
  k.write(places.laid_out(call.k)), v.write(places.laid_out(call.v));
  const Storage k_new = stored(cached.k_new), v_new = stored(cached.v_new);
  const Storage lengths = integers(DType::int32, cached.lengths);
  const Storage batch_idx = integers(DType::int64, cached.batch_idx);
  Storage table(DType::int32, places.table_shape());
  Storage cos(DType::float32, std::array{table_positions, cached.rotary_pairs});
  Storage sin(DType::float32, std::array{table_positions, cached.rotary_pairs});
  KvCache cache{.k = k.view(), .v = v.view(), .seqlens = lengths.view()};
  if (cached.page_size > 0) {
    table.write(places.table());
    cache.block_table = table.view();
  }
  if (!cached.batch_idx.empty()) cache.batch_idx = batch_idx.view();
  if (cached.s_new() > 0) cache.k_new = k_new.view(), cache.v_new = v_new.view();
  if (cached.rotary_pairs > 0) {
    std::vector<double> cosines, sines;
    for (std::int64_t position = 0; position < table_positions; ++position) {
      const Angles at = angles(position, cached.rotary_pairs);
      cosines.insert(cosines.end(), at.cos.begin(), at.cos.end());
      sines.insert(sines.end(), at.sin.begin(), at.sin.end());
    }
    cos.write(cosines), sin.write(sines);
    cache.rotary = {cos.view(), sin.view(), cached.interleaved};
  }

  const Storage q = stored(call.q, call.q_layout);
  const auto [b, s_q, h_q, d] = call.q.shape;
  const Storage o(call.out_dtype, std::array{b, s_q, h_q, call.v.shape[3]}, call.o_layout);
  const Storage lse(wide(call.dtype), std::array{b, h_q, s_q});
  LibraryOptions held(call);
  held.options.lse = lse.view();
  const std::vector<double> k_before = k.read(), v_before = v.read();
  CacheAnswer out;
  try {
    Exec exec;
    exec.threads = threads;
    attention_kvcache(q.view(), cache, o.view(), held.options, exec);
    out.answer.ran = true;
  } catch (const Error& error) {
    out.answer.error = error.what();
    out.answer.code = error.code;
  }
  out.answer.guards_held = o.guards_hold() && lse.guards_hold();
  out.answer.outputs_kept = o.untouched() && lse.untouched();
  out.answer.o = o.read(), out.answer.lse = lse.read();
  const std::vector<double> k_after = k.read(), v_after = v.read();
  out.k = places.by_sequence(call.k, k_after), out.v = places.by_sequence(call.v, v_after);
  out.rest_kept = k.guards_hold() && v.guards_hold() &&
                  places.rest_kept(call.k, k_before, k_after) &&
                  places.rest_kept(call.v, v_before, v_after);
  return out;
}

}  // namespace onepass::conformance
