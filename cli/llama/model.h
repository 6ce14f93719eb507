// A Llama-style decoder: RMSNorm, SwiGLU, and grouped-query attention by
// onepass::attention_kvcache, which turns the interleaved pairs of q and k by their positions and
// keeps the keys in pages.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cli/llama/checkpoint.h"
#include "cli/parts/array.h"
#include "onepass/exec.h"

namespace onepass::cli::llama {

/// What attention saw and gave in one layer so far, each (1, s, h, head_dim), float32.
struct Trace {
  TensorView q, k, v, o;
};

class Model {
 public:
  /// Room for `capacity` positions. `keep_trace` also keeps every layer's q and o.
  Model(const Checkpoint& checkpoint, std::int64_t capacity, bool keep_trace, const Exec& exec);

  /// Runs the tokens that follow those of earlier calls, all in one attention call a layer. Returns
  /// the logits of the last one (vocabulary), valid until the next call. Throws Error.
  std::span<const float> forward(std::span<const std::int32_t> tokens);

  std::int64_t position() const { return position_; }

  /// Needs keep_trace.
  Trace trace(std::int64_t layer) const;

 private:
  void attend(std::int64_t layer, std::int64_t tokens);
  void keep_trace(std::int64_t layer, std::int64_t tokens);
  void feed_forward(const Layer& layer, std::int64_t tokens);

  const Checkpoint& checkpoint_;
  Exec exec_;
  std::int64_t capacity_;
  std::int64_t position_ = 0;
  Array k_pages_, v_pages_;                // (layers, pages, page_size, kv_heads, head_dim)
  std::vector<std::int32_t> block_table_;  // (1, pages): the one sequence takes them in order
  std::vector<float> cos_, sin_;           // (capacity, head_dim / 2)
  Array q_trace_, o_trace_;                // (layers, capacity, heads, head_dim) or not given
  std::vector<float> x_, normed_;          // (tokens, dim)
  std::vector<float> q_, o_, step_;        // (tokens, dim)
  std::vector<float> k_new_, v_new_;       // (tokens, kv_dim)
  std::vector<float> gate_, up_;           // (tokens, hidden)
  std::vector<float> logits_;              // (vocabulary)
};

}  // namespace onepass::cli::llama
