// A call over a cache of keys and values, and the float64 reference of each sequence alone.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cpu_case.h"
#include "onepass/kv_cache.h"
#include "reference/attention.h"

namespace onepass::cpu_test {

struct CacheCase {
  std::vector<std::int64_t> lens;  // keys in the cache of each sequence
  std::int64_t s_new = 0, s_q = 1;
  std::int64_t page_size = 0;  // 0 = contiguous
  std::int64_t capacity = 64;  // of a sequence, a multiple of page_size
  bool shuffled = true;        // pages, or rows by batch_idx, in no order
  std::int64_t rotary_pairs = 0;
  bool interleaved = false;
  std::int64_t h_q = 4, h_kv = 2, d = 16, d_v = 16;
  DType dtype = DType::float32;
  std::string mask = "full", score{};
};

/// Slots that are not in use hold NaN.
class CacheCall {
 public:
  explicit CacheCall(const CacheCase& c, unsigned seed = 1);

  void run(int threads = 1);
  /// Everything as it was before run.
  void restore();

  struct Error {
    double o = 0.0, lse = 0.0;
  };
  /// From the reference over the keys that the cache now holds.
  Error error() const;
  /// Slots outside of the appended ones that differ from before, of k and v.
  std::int64_t touched_slots() const;
  /// Largest difference of an appended key or value from what it should be, relative to the
  /// precision of dtype.
  double append_error() const;

  std::int64_t sequences() const { return static_cast<std::int64_t>(c.lens.size()); }
  /// Row of the cache buffers, counted over (page, slot) or (row, slot), of a key.
  std::int64_t slot(std::int64_t b, std::int64_t key) const;

  CacheCase c;
  Buffer q, k, v, k_new, v_new, o, lse, cos, sin;
  std::vector<std::int32_t> table, seqlens;  // table: block_table or batch_idx
  KvCache cache;
  TensorView q_view, o_view;
  Attention options;

 private:
  /// Element i of a head's row of `width`, rotated as key or query at `position`.
  double rotated(const Buffer& from, std::int64_t row_at, std::int64_t i,
                 std::int64_t position) const;

  Buffer k_before_, v_before_;
};

}  // namespace onepass::cpu_test
