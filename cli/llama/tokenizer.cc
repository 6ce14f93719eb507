#include "cli/llama/tokenizer.h"

#include <algorithm>
#include <cstring>

#include "cli/parts/file.h"

namespace onepass::cli::llama {
namespace {

// Tokens 0 to 2 are unknown, begin and end; 3 to 258 stand for single bytes, where a model has
// them.
constexpr std::int32_t first_byte_token = 3;

template <class T>
bool take(std::string_view bytes, std::size_t& at, T& value) {
  if (bytes.size() - at < sizeof value) return false;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  at += sizeof value;
  return true;
}

Status refused_tokens(const std::string& found) {
  return Status::invalid(found +
                         "; a llama2.c tokenizer made for this model is expected; check the file");
}

// Bytes of the UTF-8 character that starts at `at` (at most 4; a stray byte counts as one).
std::size_t character_bytes(std::string_view text, std::size_t at) {
  std::size_t end = at + 1;
  while (end < text.size() && end - at < 4 && (text[end] & 0xc0) == 0x80) ++end;
  return end - at;
}

// "<0x0A>" stands for one byte.
bool byte_piece(const std::string& piece, std::string& byte) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece.back() != '>') return false;
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  const int high = digit(piece[3]), low = digit(piece[4]);
  if (high < 0 || low < 0) return false;
  byte = static_cast<char>(16 * high + low);
  return true;
}

}  // namespace

Result<Tokenizer> Tokenizer::parse(std::string_view bytes, std::int64_t vocabulary) {
  Tokenizer tokenizer;
  std::size_t at = 0;
  std::int32_t longest = 0;
  if (!take(bytes, at, longest) || longest < 1)
    return refused_tokens("no length of the longest token");
  for (std::int64_t token = 0; token < vocabulary; ++token) {
    float score = 0.0f;
    std::int32_t length = 0;
    if (!take(bytes, at, score) || !take(bytes, at, length) || length < 0 ||
        static_cast<std::size_t>(length) > bytes.size() - at) {
      return refused_tokens("the file ends at token " + std::to_string(token) + " of " +
                            std::to_string(vocabulary));
    }
    tokenizer.pieces_.emplace_back(bytes.substr(at, static_cast<std::size_t>(length)));
    tokenizer.scores_.push_back(score);
    at += static_cast<std::size_t>(length);
    tokenizer.index_.emplace(tokenizer.pieces_.back(), static_cast<std::int32_t>(token));
  }
  if (at != bytes.size()) {
    return refused_tokens(std::to_string(bytes.size() - at) + " bytes follow the last of " +
                          std::to_string(vocabulary) + " tokens");
  }
  return tokenizer;
}

Result<Tokenizer> Tokenizer::read(const std::string& path, std::int64_t vocabulary) {
  const Result<std::string> bytes = read_file(path);
  if (!bytes.ok()) return bytes.status();
  Result<Tokenizer> tokenizer = parse(bytes.value(), vocabulary);
  if (tokenizer.ok()) return tokenizer;
  return Status{tokenizer.status().code, path + ": " + tokenizer.status().message};
}

std::int32_t Tokenizer::find(const std::string& piece) const {
  const auto found = index_.find(piece);
  return found == index_.end() ? -1 : found->second;
}

void Tokenizer::append_characters(std::string_view text, std::vector<std::int32_t>& tokens) const {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = character_bytes(text, at);
    const std::int32_t token = find(std::string(text.substr(at, size)));
    if (token >= 0) {
      tokens.push_back(token);
    } else {
      for (std::size_t i = at; i < at + size; ++i) {
        const std::int32_t byte = static_cast<unsigned char>(text[i]) + first_byte_token;
        tokens.push_back(byte < static_cast<std::int32_t>(pieces_.size()) ? byte : 0);
      }
    }
    at += size;
  }
}

bool Tokenizer::merge_best_pair(std::vector<std::int32_t>& tokens) const {
  std::size_t best = tokens.size();
  std::int32_t merged = -1;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    const std::int32_t token = find(pieces_[static_cast<std::size_t>(tokens[i])] +
                                    pieces_[static_cast<std::size_t>(tokens[i + 1])]);
    if (token < 0) continue;
    if (merged < 0 ||
        scores_[static_cast<std::size_t>(token)] > scores_[static_cast<std::size_t>(merged)]) {
      best = i;
      merged = token;
    }
  }
  if (merged < 0) return false;
  tokens[best] = merged;
  tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  return true;
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<std::int32_t> tokens;
  if (!text.empty()) {
    // Words carry their leading blank, so the first one gets one too.
    append_characters(" ", tokens);
    append_characters(text, tokens);
    while (merge_best_pair(tokens)) {
    }
  }
  tokens.insert(tokens.begin(), begin_of_text);
  return tokens;
}

std::size_t Tokenizer::longest_text(std::int64_t tokens) const {
  std::size_t longest = 1;
  for (const std::string& piece : pieces_) longest = std::max(longest, piece.size());
  return longest * static_cast<std::size_t>(tokens);
}

std::string Tokenizer::decode(std::int32_t previous, std::int32_t token) const {
  const std::string& piece = pieces_.at(static_cast<std::size_t>(token));
  std::string byte;
  if (byte_piece(piece, byte)) return byte;
  return previous == begin_of_text && piece.starts_with(' ') ? piece.substr(1) : piece;
}

}  // namespace onepass::cli::llama
