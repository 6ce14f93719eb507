// The tokenizer that goes with a llama2.c checkpoint: int32 longest token, then for each token a
// float32 score, an int32 length and its bytes. Text becomes tokens by greedy pair merging.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "onepass/status.h"

namespace onepass::cli::llama {

class Tokenizer {
 public:
  static constexpr std::int32_t begin_of_text = 1;

  /// `vocabulary` tokens are read, and no byte may follow them. Messages begin with the path.
  static Result<Tokenizer> read(const std::string& path, std::int64_t vocabulary);
  static Result<Tokenizer> parse(std::string_view bytes, std::int64_t vocabulary);

  /// begin_of_text, then the tokens of the text (none for an empty one).
  std::vector<std::int32_t> encode(std::string_view text) const;

  /// A text of more bytes than this has more than `tokens` tokens. Encoding takes time that grows
  /// with the square of the length, so look first.
  std::size_t longest_text(std::int64_t tokens) const;

  /// What a token adds to the text after `previous`: its bytes, or the byte it stands for.
  std::string decode(std::int32_t previous, std::int32_t token) const;

 private:
  std::int32_t find(const std::string& piece) const;
  void append_characters(std::string_view text, std::vector<std::int32_t>& tokens) const;
  bool merge_best_pair(std::vector<std::int32_t>& tokens) const;

  std::vector<std::string> pieces_;
  std::vector<float> scores_;
  std::unordered_map<std::string, std::int32_t> index_;
};

}  // namespace onepass::cli::llama
