// A Llama-style decoder: RMSNorm, rotary positions on interleaved pairs, grouped-query attention by
// onepass::attention over a cache of keys and values, SwiGLU.
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
  void feed_forward(const Layer& layer, std::int64_t tokens);

  const Checkpoint& checkpoint_;
  Exec exec_;
  std::int64_t capacity_;
  std::int64_t position_ = 0;
  Array k_cache_, v_cache_;          // (layers, capacity, kv_heads, head_dim)
  Array q_trace_, o_trace_;          // (layers, capacity, heads, head_dim) or not given
  std::vector<float> x_, normed_;    // (tokens, dim)
  std::vector<float> q_, o_, step_;  // (tokens, dim)
  std::vector<float> gate_, up_;     // (tokens, hidden)
  std::vector<float> logits_;        // (vocabulary)
};

}  // namespace onepass::cli::llama
