// Text -> tokens. Every token knows where it stands, so that every error can name its column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace onepass::lang {

/// A text that errors can point into.
struct Source {
  std::string_view label;  // "mask", "score" or "definitions"
  std::string_view text;
  /// `mask, column 9`, or with a line number when the text has several lines.
  std::string place(std::size_t offset) const;
};

struct Token {
  enum class Kind : std::uint8_t {
    end,
    separator,  // `;` or a newline outside brackets; only when separators are asked for
    invalid,    // `problem` says why
    integer,
    real,
    word,
    question,
    colon,
    bar,
    ampersand,
    less,
    less_equal,
    greater,
    greater_equal,
    equal,
    not_equal,
    plus,
    minus,
    star,
    slash,
    slash_slash,
    percent,
    exclamation,
    left_paren,
    right_paren,
    left_bracket,
    right_bracket,
    comma,
    assign,
  };
  Kind kind = Kind::end;
  std::size_t offset = 0;
  std::string_view text;
  std::int64_t integer = 0;
  double real = 0.0;
  std::string problem;
};

/// Yields one token after the other.
class Lexer {
 public:
  /// With `separators`, `;` and newlines outside brackets are tokens; else newlines are blanks.
  explicit Lexer(std::string_view text, bool separators = false)
      : text_(text), separators_(separators) {}
  Token next();

 private:
  Token number();
  Token symbol();
  Token make(Token::Kind kind, std::size_t length);
  Token invalid(std::size_t length, std::string problem);

  std::string_view text_;
  bool separators_;
  std::size_t at_ = 0;
  int brackets_ = 0;
};

/// The text in quotes; bytes that are not printable ASCII or UTF-8 as \xNN; shortened.
std::string quoted(std::string_view text, char mark = '"');

bool is_word_start(char c);
bool is_word_part(char c);

}  // namespace onepass::lang
