// Three ways to compute the same attention, written to be read, with their work counted: standard
// attention, FlashAttention v1 and FlashAttention v2. float32, one thread, plain loops.
#pragma once

#include <cstdint>
#include <vector>

namespace onepass::reference {

/// One attention over `heads` heads. q (heads, s_q, d), k (heads, s_kv, d), v (heads, s_kv, d_v),
/// o (heads, s_q, d_v), row-major. Causal is bottom-right: query i sees keys j <= i + s_kv - s_q.
struct Lesson {
  std::int64_t heads = 1;
  std::int64_t s_q = 0, s_kv = 0;
  std::int64_t d = 0, d_v = 0;
  std::int64_t block_q = 64, block_k = 64;  // rows of Q and of K, V in fast memory at a time
  float scale = 1.0f;
  bool causal = false;
};

/// What an algorithm did. Slow memory is where the tensors live (HBM on a GPU, DRAM on a CPU); fast
/// memory holds the blocks being worked on.
struct Work {
  std::int64_t bytes_read = 0;     // slow -> fast
  std::int64_t bytes_written = 0;  // fast -> slow
  std::int64_t exponentials = 0;
  /// Multiplications whose only purpose is to bring an output element to a new maximum or sum.
  std::int64_t rescalings = 0;
  std::int64_t extra_bytes = 0;  // slow memory beyond q, k, v and o
  friend bool operator==(const Work&, const Work&) = default;
};

/// A block of work in the order the algorithm did it, of the first head.
struct Visit {
  std::int64_t q_block, k_block;
};

struct Lecture {
  std::vector<float> o;
  Work work;
  std::vector<Visit> order;
};

/// The whole score matrix in slow memory: S = scale Q K^T, P = softmax(S), O = P V, one after the
/// other, each streamed through fast memory in blocks.
Lecture standard_attention(const Lesson&, const float* q, const float* k, const float* v);

/// FlashAttention (Dao et al., 2022, Algorithm 1): outer loop over key blocks; every step divides
/// by the new sum, so O is brought up to date and written back at each.
Lecture flash_v1(const Lesson&, const float* q, const float* k, const float* v);

/// FlashAttention-2 (Dao, 2023, Algorithm 1): outer loop over query blocks; O stays in fast memory
/// and is divided by the sum once, at the end.
Lecture flash_v2(const Lesson&, const float* q, const float* k, const float* v);

/// The same counts from the papers' formulas, without running anything.
Work predict_standard(const Lesson&);
Work predict_flash_v1(const Lesson&);
Work predict_flash_v2(const Lesson&);

}  // namespace onepass::reference
