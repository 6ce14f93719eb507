// A Llama-style model in the llama2.c checkpoint format: 7 int32, then float32 arrays in fixed
// order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onepass/status.h"

namespace onepass::cli::llama {

struct Shape {
  std::int64_t dim = 0, hidden = 0, layers = 0, heads = 0, kv_heads = 0, vocabulary = 0,
               context = 0;
  bool tied_head = true;  // the output head is the token embedding
  std::int64_t head_dim() const { return dim / heads; }
  std::int64_t kv_dim() const { return head_dim() * kv_heads; }
};

struct Layer {
  std::span<const float> attention_norm;  // (dim)
  std::span<const float> wq, wk, wv, wo;  // (dim, dim), (kv_dim, dim), (kv_dim, dim), (dim, dim)
  std::span<const float> ffn_norm;        // (dim)
  std::span<const float> w1, w2, w3;      // (hidden, dim), (dim, hidden), (hidden, dim)
};

/// Matrices are (out, in), row-major.
struct Checkpoint {
  Shape shape;
  std::span<const float> embedding;  // (vocabulary, dim)
  std::vector<Layer> layers;
  std::span<const float> final_norm;  // (dim)
  std::span<const float> head;        // (vocabulary, dim)
  std::vector<float> weights;         // what the spans see
};

/// Every size is checked against the file's length before anything is allocated. Messages begin
/// with the path.
Result<Checkpoint> read_checkpoint(const std::string& path);

/// The same from memory.
Result<Checkpoint> parse_checkpoint(std::string_view bytes);

}  // namespace onepass::cli::llama
