// A call over sequences of different lengths, packed or in rooms, and the float64 reference of each
// sequence alone.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cpu_case.h"
#include "reference/attention.h"

namespace onepass::cpu_test {

struct Ragged {
  std::vector<std::int64_t> q_lens, k_lens;  // of each sequence
  std::vector<std::int64_t> rooms{};         // of keys, at least k_lens; empty = k_lens
  bool packed_q = true, packed_k = true;     // else (b, longest, h, d)
  std::int64_t h_q = 1, h_kv = 1, d = 8, d_v = 8;
  DType dtype = DType::float32;
  DType index_dtype = DType::int32;
  Attention options{};
  /// The same options for the reference of sequence b.
  std::function<reference::Options(std::int64_t)> reference{};
  bool use_lens = false;  // pass seqused_k also where rooms are k_lens
};

/// Buffers of a Ragged; keys and values beyond k_lens are NaN.
class RaggedCall {
 public:
  explicit RaggedCall(const Ragged& r, unsigned seed = 1);

  /// Fills the outputs with NaN and calls attention().
  void run(int threads = 1);

  struct Error {
    double o = 0.0, lse = 0.0;
  };
  /// Largest differences from the reference, in units of the largest value of o and of 1.
  Error error();

  std::int64_t sequences() const { return static_cast<std::int64_t>(r.q_lens.size()); }
  /// What sequence b gave: o then lse, to compare bits.
  std::vector<double> result(std::int64_t b) const;

  Ragged r;
  Buffer q, k, v, o, lse;
  std::vector<std::int64_t> q_first, k_first;  // rows; of dense tensors counted over (b, s)
  Attention options;                           // with the lengths
  TensorView q_view, k_view, v_view, o_view;

 private:
  TensorView integers(const std::vector<std::int64_t>& values);
  reference::Tensor sequence_of(const Buffer& from, std::int64_t b, std::int64_t first,
                                std::int64_t rows, std::int64_t heads, std::int64_t width) const;

  std::int64_t q_rows_ = 0, k_rows_ = 0;     // of the buffers
  std::int64_t longest_q_ = 0, room_k_ = 0;  // rows of a sequence where dense
  std::vector<std::vector<std::int64_t>> wide_;
  std::vector<std::vector<std::int32_t>> narrow_;
};

}  // namespace onepass::cpu_test
