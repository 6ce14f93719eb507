#include "core/kv_cache.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "core/check.h"
#include "core/lengths.h"

namespace onepass {
namespace {

std::string element(std::string_view argument, std::int64_t b, std::int64_t value) {
  return std::string(argument) + ": [" + std::to_string(b) + "] = " + std::to_string(value);
}

Status check_pair(std::string_view first, const TensorView& a, std::string_view second,
                  const TensorView& b) {
  if (a.given() == b.given()) return {};
  return Status::invalid(std::string(a.given() ? second : first) + ": not given beside " +
                         std::string(a.given() ? first : second) +
                         "; both or neither are allowed; pass both");
}

Status check_same_dtype(std::string_view argument, const TensorView& view, DType dtype) {
  if (view.dtype == dtype) return {};
  return Status::type_error(std::string(argument) + ": dtype " + name(view.dtype) + " beside q's " +
                            name(dtype) +
                            "; q, the cache and what is appended have one dtype; convert it");
}

Status check_cache_tensors(const TensorView& q, const KvCache& c) {
  const bool paged = c.block_table.given();
  const char* k_dims = paged ? "(pages, page_size, h_kv, d)" : "(b_cache, capacity, h_kv, d)";
  const char* v_dims = paged ? "(pages, page_size, h_kv, d_v)" : "(b_cache, capacity, h_kv, d_v)";
  if (Status s = check::tensor("q", q, 4, "(b, s_q, h_q, d)"); !s.ok()) return s;
  if (Status s = check::tensor("cache.k", c.k, 4, k_dims); !s.ok()) return s;
  if (Status s = check::tensor("cache.v", c.v, 4, v_dims); !s.ok()) return s;
  const auto& shape = c.k.shape;
  for (const Status& s :
       {check_same_dtype("cache.k", c.k, q.dtype), check_same_dtype("cache.v", c.v, q.dtype),
        check::shape("cache.k", c.k, {shape[0], shape[1], shape[2], q.shape[3]}, k_dims),
        check::shape("cache.v", c.v, {shape[0], shape[1], shape[2], c.v.shape[3]}, v_dims),
        check_per_sequence("cache.seqlens", c.seqlens, q.shape[0])}) {
    if (!s.ok()) return s;
  }
  return {};
}

Status check_places(const KvCache& c, std::int64_t b) {
  if (c.block_table.given()) {
    if (c.batch_idx.given()) {
      return Status::invalid(
          "cache.batch_idx: given beside block_table; one of them says where a sequence lies; "
          "drop one");
    }
    if (Status s = check::tensor("cache.block_table", c.block_table, 2, "(b, blocks)"); !s.ok()) {
      return s;
    }
    if (Status s = check::dtype("cache.block_table", c.block_table, {DType::int32}, "convert it");
        !s.ok()) {
      return s;
    }
    if (Status s = check::shape("cache.block_table", c.block_table, {b, c.block_table.shape[1]},
                                "(b, blocks)");
        !s.ok()) {
      return s;
    }
    if (c.k.shape[1] > 0) return {};
    return Status::invalid("cache.k: pages of 0 keys; a page holds 1 key or more; pass its size");
  }
  if (c.batch_idx.given()) return check_per_sequence("cache.batch_idx", c.batch_idx, b);
  if (c.k.shape[0] == b) return {};
  return Status::invalid("cache.k: " + std::to_string(c.k.shape[0]) + " rows for " +
                         std::to_string(b) +
                         " sequences; as many, or any number with batch_idx or, for pages, "
                         "block_table, are allowed; pass one of these");
}

Status check_new(const TensorView& q, const KvCache& c) {
  if (Status s = check_pair("cache.k_new", c.k_new, "cache.v_new", c.v_new); !s.ok()) return s;
  if (!c.k_new.given()) return {};
  const std::int64_t b = q.shape[0], h_kv = c.k.shape[2];
  if (Status s = check::tensor("cache.k_new", c.k_new, 4, "(b, s_new, h_kv, d)"); !s.ok()) return s;
  if (Status s = check::tensor("cache.v_new", c.v_new, 4, "(b, s_new, h_kv, d_v)"); !s.ok()) {
    return s;
  }
  const std::int64_t s_new = c.k_new.shape[1];
  for (const Status& s :
       {check_same_dtype("cache.k_new", c.k_new, q.dtype),
        check_same_dtype("cache.v_new", c.v_new, q.dtype),
        check::shape("cache.k_new", c.k_new, {b, s_new, h_kv, q.shape[3]}, "(b, s_new, h_kv, d)"),
        check::shape("cache.v_new", c.v_new, {b, s_new, h_kv, c.v.shape[3]},
                     "(b, s_new, h_kv, d_v)"),
        check::writable("cache.k", c.k), check::writable("cache.v", c.v)}) {
    if (!s.ok()) return s;
  }
  return {};
}

Status check_rotary(const TensorView& q, const Rotary& r) {
  if (Status s = check_pair("rotary.cos", r.cos, "rotary.sin", r.sin); !s.ok()) return s;
  if (!r.cos.given()) return {};
  for (const auto& [argument, view] : {std::pair{"rotary.cos", &r.cos}, {"rotary.sin", &r.sin}}) {
    if (Status s = check::tensor(argument, *view, 2, "(positions, rotary_dim / 2)"); !s.ok()) {
      return s;
    }
    if (Status s = check::dtype(argument, *view, {DType::float32, q.dtype},
                                "convert it to float32 or q's dtype");
        !s.ok()) {
      return s;
    }
  }
  if (Status s =
          check::shape("rotary.sin", r.sin, {r.cos.shape[0], r.cos.shape[1]}, "the shape of cos");
      !s.ok()) {
    return s;
  }
  if (r.cos.shape[1] <= q.shape[3] / 2) return {};
  return Status::invalid("rotary.cos: " + std::to_string(r.cos.shape[1]) + " pairs for head dim " +
                         std::to_string(q.shape[3]) +
                         "; at most d / 2 pairs are allowed; where the tables give each angle "
                         "twice, pass one half: cos[:, :d/2], or cos[:, ::2] if interleaved");
}

// Keys [first, first + count) of sequence b, appended: their pages, or the rows of its cache.
struct Slots {
  std::int64_t page, first, last;  // both in the page
};

void add_slots(const Problem& p, std::int64_t b, std::int64_t first, std::vector<Slots>& all) {
  const Sequence at = p.sequence(b);
  const std::int64_t end = first + p.cache.s_new;
  const std::int64_t size = p.cache.page_size;
  if (size == 0) {
    all.push_back({at.k_batch, first, end - 1});
    return;
  }
  for (std::int64_t key = first; key < end; key = (key / size + 1) * size) {
    const std::int64_t last = std::min((key / size + 1) * size, end) - 1;
    all.push_back({at.pages[key / size * at.page_stride], key % size, last % size});
  }
}

Status check_slots_apart(const Problem& p) {
  if (p.cache.s_new == 0 || p.b < 2) return {};
  std::vector<Slots> all;
  for (std::int64_t b = 0; b < p.b; ++b) add_slots(p, b, integer_at(p.seqused_k, b), all);
  std::sort(all.begin(), all.end(), [](const Slots& x, const Slots& y) {
    return std::tie(x.page, x.first) < std::tie(y.page, y.first);
  });
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (all[i].page != all[i - 1].page || all[i].first > all[i - 1].last) continue;
    const bool paged = p.cache.page_size > 0;
    return Status::invalid(std::string(paged ? "cache.block_table" : "cache.batch_idx") +
                           ": two sequences append to slot " + std::to_string(all[i].first) +
                           (paged ? " of page " : " of row ") + std::to_string(all[i].page) +
                           "; each new key needs a slot of its own; give them different ones");
  }
  return {};
}

// Length, pages or row of one sequence.
Status check_place(const Problem& p, std::int64_t b) {
  const CacheUse& c = p.cache;
  const std::int64_t used = integer_at(p.seqused_k, b);
  if (used < 0) {
    return Status::invalid(element("cache.seqlens", b, used) +
                           "; lengths are 0 or more; pass the keys in the cache");
  }
  if (used > p.s_kv || c.s_new > p.s_kv - used) {
    const std::string room = std::to_string(p.s_kv) + " keys of " +
                             (c.page_size > 0 ? "its blocks in block_table" : "the capacity");
    return Status::invalid(element("cache.seqlens", b, used) + " and " + std::to_string(c.s_new) +
                           " new for " + room +
                           "; both together have to fit; free keys or give it more room");
  }
  if (c.batch_idx.given()) {
    const std::int64_t row = integer_at(c.batch_idx, b);
    if (row >= 0 && row < p.k.shape[0]) return {};
    return Status::invalid(element("cache.batch_idx", b, row) + " of " +
                           std::to_string(p.k.shape[0]) +
                           " rows; rows from 0 on are allowed; pass one of the cache");
  }
  if (c.page_size == 0) return {};
  const Sequence at = p.sequence(b);
  for (std::int64_t block = 0; block * c.page_size < at.s_kv; ++block) {
    const std::int64_t page = at.pages[block * at.page_stride];
    if (page >= 0 && page < p.k.shape[0]) continue;
    return Status::invalid("cache.block_table: [" + std::to_string(b) + ", " +
                           std::to_string(block) + "] = " + std::to_string(page) + " of " +
                           std::to_string(p.k.shape[0]) +
                           " pages; pages from 0 on are allowed; pass one of the cache");
  }
  return {};
}

Status check_positions(const Problem& p, std::int64_t b) {
  if (!p.cache.cos.given()) return {};
  const lang::Scope scope = p.scope(b, 0);
  const std::int64_t positions = p.cache.cos.shape[0];
  const std::int64_t key = scope.k_start + scope.s_kv - p.cache.s_new;
  for (const auto& [what, first, count] :
       {std::tuple{"queries", scope.q_start, p.s_q}, {"new keys", key, p.cache.s_new}}) {
    if (count == 0 || (first >= 0 && count <= positions - first)) continue;
    return Status::invalid("rotary.cos: " + std::to_string(positions) + " positions for " + what +
                           " of sequence " + std::to_string(b) + " from position " +
                           std::to_string(first) + " on, " + std::to_string(count) +
                           " of them; every position needs a row; pass longer tables");
  }
  return {};
}

}  // namespace

Result<Problem> validate(const TensorView& q, const KvCache& c, const TensorView& o,
                         const Attention& options) {
  for (const auto& [argument, view] : {std::pair{"cu_seqlens_q", &options.cu_seqlens_q},
                                       {"cu_seqlens_k", &options.cu_seqlens_k},
                                       {"seqused_k", &options.seqused_k}}) {
    if (!view->given()) continue;
    return Status::invalid(std::string(argument) +
                           ": given; the cache's seqlens say how long a sequence is; leave it out");
  }
  if (Status s = check_cache_tensors(q, c); !s.ok()) return s;
  if (Status s = check_places(c, q.shape[0]); !s.ok()) return s;
  if (Status s = check_new(q, c); !s.ok()) return s;
  if (Status s = check_rotary(q, c.rotary); !s.ok()) return s;
  const bool paged = c.block_table.given();
  std::int64_t capacity = c.k.shape[1];
  if (paged && __builtin_mul_overflow(capacity, c.block_table.shape[1], &capacity)) {
    return Status::invalid("cache.block_table: " + c.block_table.describe() + " of pages of " +
                           std::to_string(c.k.shape[1]) +
                           " keys; keys have to fit int64; pass the blocks in use");
  }
  // The rest of the call is that over keys as they would lie in one tensor.
  TensorView k = c.k, v = c.v;
  k.shape[0] = v.shape[0] = q.shape[0];
  k.shape[1] = v.shape[1] = capacity;
  if (paged) k.strides = v.strides = {};
  Attention dense = options;
  dense.seqused_k = c.seqlens;
  Result<Problem> result = validate(q, k, v, o, dense);
  if (!result.ok()) return result;
  Problem& p = result.value();
  p.k = c.k, p.v = c.v;
  p.cache = {.given = true,
             .page_size = paged ? c.k.shape[1] : 0,
             .block_table = c.block_table,
             .batch_idx = c.batch_idx,
             .s_new = c.k_new.given() ? c.k_new.shape[1] : 0,
             .k_new = c.k_new,
             .v_new = c.v_new,
             .cos = c.rotary.cos,
             .sin = c.rotary.sin,
             .interleaved = c.rotary.interleaved};
  return result;
}

Status check_cache(const Problem& p) {
  if (!p.cache.given) return {};
  for (std::int64_t b = 0; b < p.b; ++b) {
    if (Status s = check_place(p, b); !s.ok()) return s;
    if (Status s = check_positions(p, b); !s.ok()) return s;
  }
  return check_slots_apart(p);
}

}  // namespace onepass
