// The syntax tree of one expression: what was written, before names have a meaning.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lang/lex.h"

namespace onepass::lang {

struct Term {
  enum class Kind : std::uint8_t {
    integer,  // 7
    real,     // 0.5
    word,     // q, causal, inf, true
    call,     // window(l, r); the name is `text`
    index,    // ids[b, q]; the name is `text`
    unary,    // `operators[0]` is minus or exclamation
    binary,   // `operators[0]`
    compare,  // a < b <= c: one more child than operators
    choice,   // condition ? a : b
  };
  Kind kind = Kind::integer;
  std::size_t offset = 0;  // of the operator, or of the first character
  std::string_view text;
  std::int64_t integer = 0;
  double real = 0.0;
  int depth = 1;  // chains of one left operand count once
  std::vector<Token::Kind> operators;
  std::vector<std::int32_t> children;
};

struct Tree {
  std::vector<Term> terms;
  std::int32_t root = -1;
  const Term& at(std::int32_t term) const { return terms[static_cast<std::size_t>(term)]; }
};

/// Limits that keep every expression within the stack and the kernels within reason.
inline constexpr int max_nesting = 200;
inline constexpr int max_terms = 4096;

}  // namespace onepass::lang
