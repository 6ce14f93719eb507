// Attention over a cache of keys and values, contiguous or paged, with new ones appended in place.
#pragma once

#include "onepass/attention.h"
#include "onepass/plan.h"

namespace onepass {

/// Rotary position embedding (Su et al., 2021) of k_new and of q, by the positions that a mask sees
/// as `k` and `q`: with the defaults, new key i and query i of s_new queries both have position
/// seqlens[b] + i. q itself is not changed.
struct Rotary {
  /// (positions, rotary_dim / 2), float32 or the dtype of q; rotary_dim at most d. Both or neither.
  TensorView cos{}, sin{};
  /// true: pairs (0, 1), (2, 3), ...; false: pairs (i, i + rotary_dim / 2).
  bool interleaved = false;
};

struct KvCache {
  /// Contiguous: (b_cache, capacity, h_kv, d) and (b_cache, capacity, h_kv, d_v).
  /// Paged: (pages, page_size, h_kv, d) and (pages, page_size, h_kv, d_v), any page_size.
  /// The dtype of q, any strides. Slots that are not in use are never read.
  TensorView k{}, v{};
  /// Keys already in the cache of each sequence, int32 or int64 (b). Not changed by the call.
  TensorView seqlens{};
  /// Page of each block of page_size keys of a sequence, int32 (b, blocks); not given = contiguous.
  TensorView block_table{};
  /// Row of the contiguous cache that each sequence uses, int32 or int64 (b); default 0, 1, ...
  TensorView batch_idx{};
  /// Put into the cache at [seqlens[b], seqlens[b] + s_new) before attention: (b, s_new, h_kv, d)
  /// and (b, s_new, h_kv, d_v). Both or neither.
  TensorView k_new{}, v_new{};
  Rotary rotary{};
};

/// Attention of q (b, s_q, h_q, d) over the seqlens[b] + s_new keys of each sequence, into o
/// (b, s_q, h_q, d_v); by default the last query has the position of the last key. Masks and scores
/// see that length as s_kv. An append beyond the capacity, a page that is not there, two sequences
/// that append to one slot: each is an Error before anything is written.
void attention_kvcache(const TensorView& q, const KvCache& cache, const TensorView& o,
                       const Attention& options = {}, const Exec& exec = {});

/// Plans that call without touching memory: data pointers may be null.
Plan plan(const TensorView& q, const KvCache& cache, const TensorView& o,
          const Attention& options = {}, int threads = 0);

/// Plans it with its kernels ready on the device (onepass/plan.h).
Plan prepare(const TensorView& q, const KvCache& cache, const TensorView& o,
             const Attention& options = {}, int threads = 0);

}  // namespace onepass
