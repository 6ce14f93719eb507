// One call over a key/value cache described once, for the library and for the
// reference alike.
#pragma once

#include <string>
#include <vector>

#include "conformance/call.h"

namespace onepass::conformance {

struct CacheCall {
  /// Its k and v are what the caches hold: (b, capacity, h_kv, d) and d_v.
  /// Slots beyond `lengths` are taken as NaN.
  Call call;
  std::vector<std::int64_t> lengths;  // keys in the cache of each sequence
  reference::Tensor k_new,
      v_new;                            // (b, s_new, h_kv, d) and d_v; empty = nothing new
  std::int64_t page_size = 0;           // 0 = contiguous; pages lie in no order
  std::vector<std::int64_t> batch_idx;  // row of the contiguous cache; none = 0, 1, ...
  std::int64_t rotary_pairs = 0;        // 0 = no rotary embedding
  bool interleaved = false;
  Layout cache_layout = Layout::seq_major;

  std::int64_t s_new() const { return k_new.shape[1]; }
  /// The same attention over the joined keys, q and the new keys rotated,
  /// rounded to the dtype.
  Call joined() const;
  std::string line() const;
};

/// Cosines and sines of `pairs` angles at a position, as float32 tables hold
/// them.
struct Angles {
  std::vector<double> cos, sin;
};
Angles angles(std::int64_t position, std::int64_t pairs);

struct CacheAnswer {
  Answer answer;
  std::vector<double> k, v;  // the caches afterwards, as in the call
  bool rest_kept = true;     // nothing but the new slots has changed, or been written around
};

CacheAnswer run(const CacheCall& call, int threads);

}  // namespace onepass::conformance
