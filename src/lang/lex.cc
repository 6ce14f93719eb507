#include "lang/lex.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

namespace onepass::lang {
namespace {

using Kind = Token::Kind;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

struct Spelling {
  std::string_view text;
  Kind kind;
};

// Longer spellings first: the first one that fits is taken.
constexpr Spelling spellings[] = {
    {"<=", Kind::less_equal},   {">=", Kind::greater_equal},
    {"==", Kind::equal},        {"!=", Kind::not_equal},
    {"//", Kind::slash_slash},  {"?", Kind::question},
    {":", Kind::colon},         {"|", Kind::bar},
    {"&", Kind::ampersand},     {"<", Kind::less},
    {">", Kind::greater},       {"+", Kind::plus},
    {"-", Kind::minus},         {"*", Kind::star},
    {"/", Kind::slash},         {"%", Kind::percent},
    {"!", Kind::exclamation},   {"(", Kind::left_paren},
    {")", Kind::right_paren},   {"[", Kind::left_bracket},
    {"]", Kind::right_bracket}, {",", Kind::comma},
    {"=", Kind::assign},
};

struct Mistake {
  std::string_view text;
  std::string_view problem;
};

constexpr Mistake mistakes[] = {
    {"&&", "\"&&\" is not an operator here; and is written &"},
    {"||", "\"||\" is not an operator here; or is written |"},
    {"**", "\"**\" is not an operator here; powers are written as products"},
};

// Bytes of the UTF-8 character at the front of `text`; 1 when it is none.
std::size_t character_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 1;
  if (length > text.size() || lead >= 0xF5) return 1;
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 1;
  }
  return length;
}

}  // namespace

bool is_word_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_word_part(char c) { return is_word_start(c) || is_digit(c); }

std::string quoted(std::string_view text, char mark) {
  constexpr std::size_t limit = 40;
  std::string out(1, mark);
  std::size_t at = 0;
  while (at < text.size() && at < limit) {
    const std::size_t length = character_length(text.substr(at));
    const auto lead = static_cast<unsigned char>(text[at]);
    if (length > 1 || (lead >= 0x20 && lead < 0x7F)) {
      out += text.substr(at, length);
    } else {
      char code[5];
      std::snprintf(code, sizeof code, "\\x%02X", static_cast<unsigned>(lead));
      out += code;
    }
    at += length;
  }
  if (at < text.size()) out += "...";
  return out + mark;
}

std::string Source::place(std::size_t offset) const {
  const std::string_view before = text.substr(0, offset);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t newline = before.rfind('\n');
  const std::size_t column = newline == before.npos ? offset + 1 : offset - newline;
  std::string out(label);
  if (text.find('\n') != text.npos) out += ", line " + std::to_string(line);
  return out + ", column " + std::to_string(column);
}

Token Lexer::make(Kind kind, std::size_t length) {
  Token token;
  token.kind = kind;
  token.offset = at_;
  token.text = text_.substr(at_, length);
  at_ += length;
  return token;
}

Token Lexer::invalid(std::size_t length, std::string problem) {
  Token token = make(Kind::invalid, length);
  token.problem = std::move(problem);
  return token;
}

Token Lexer::next() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    const bool separates = separators_ && (c == ';' || (c == '\n' && brackets_ == 0));
    if (separates) {
      brackets_ = 0;
      return make(Kind::separator, 1);
    }
    if (c != ' ' && c != '\t' && c != '\n' && c != '\r') break;
    ++at_;
  }
  if (at_ == text_.size()) return make(Kind::end, 0);
  const char c = text_[at_];
  if (is_digit(c)) return number();
  if (is_word_start(c)) {
    std::size_t end = at_;
    while (end < text_.size() && is_word_part(text_[end])) ++end;
    return make(Kind::word, end - at_);
  }
  return symbol();
}

Token Lexer::number() {
  std::size_t end = at_;
  const auto digits = [&] {
    while (end < text_.size() && is_digit(text_[end])) ++end;
  };
  digits();
  bool real = false;
  if (end < text_.size() && text_[end] == '.') {
    real = true;
    ++end;
    digits();
  }
  if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
    std::size_t exponent = end + 1;
    if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-')) ++exponent;
    if (exponent < text_.size() && is_digit(text_[exponent])) {
      real = true;
      end = exponent;
      digits();
    }
  }
  if (end < text_.size() && (is_word_part(text_[end]) || text_[end] == '.')) {
    while (end < text_.size() && (is_word_part(text_[end]) || text_[end] == '.')) ++end;
    const std::string shown = quoted(text_.substr(at_, end - at_));
    return invalid(
        end - at_,
        shown + " is not a number; numbers are written 7, 0.5 or 1e-3; begin names with a letter");
  }
  Token token = make(real ? Kind::real : Kind::integer, end - at_);
  const char* first = token.text.data();
  const char* last = first + token.text.size();
  const std::errc outcome = real ? std::from_chars(first, last, token.real).ec
                                 : std::from_chars(first, last, token.integer).ec;
  if (outcome != std::errc()) {
    token.kind = Kind::invalid;
    token.problem = quoted(token.text) +
                    (real ? " does not fit float64; the largest is about 1.8e308; write inf or 0"
                          : " does not fit int64; the largest is 9223372036854775807; write a "
                            "float such as 1e19");
  }
  return token;
}

Token Lexer::symbol() {
  const std::string_view rest = text_.substr(at_);
  for (const Mistake& mistake : mistakes) {
    if (rest.starts_with(mistake.text)) {
      return invalid(mistake.text.size(), std::string(mistake.problem));
    }
  }
  for (const Spelling& spelling : spellings) {
    if (!rest.starts_with(spelling.text)) continue;
    const Kind kind = spelling.kind;
    if (kind == Kind::left_paren || kind == Kind::left_bracket) ++brackets_;
    if (kind == Kind::right_paren || kind == Kind::right_bracket) --brackets_;
    return make(kind, spelling.text.size());
  }
  const std::size_t length = character_length(rest);
  return invalid(length, quoted(rest.substr(0, length)) +
                             " is not part of the language; see docs/expressions.md");
}

}  // namespace onepass::lang
