// An expression as written: operators resolved by precedence, words not yet given a meaning.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reference/expression.h"

namespace onepass::reference {

struct Syntax {
  enum class Kind { number, word, call, index, operation };
  Kind kind = Kind::number;
  Value value;         // of a number
  std::string word;    // of a word, a call, an index
  Op op = Op::number;  // of an operation
  std::vector<Syntax> children;
};

/// `name(a, b) = body` or `name = body`.
struct DefinitionSyntax {
  std::string name;
  std::vector<std::string> parameters;
  Syntax body;
};

/// One expression. Throws std::invalid_argument.
Syntax parse_syntax(std::string_view text);

/// Definitions, separated by `;` or, outside brackets, by the end of a line.
std::vector<DefinitionSyntax> parse_definitions(std::string_view text);

}  // namespace onepass::reference
