// Tokens -> syntax tree, and the head of a definition. Precedence lives here and nowhere else.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lang/syntax.h"
#include "onepass/status.h"

namespace onepass::lang {

/// `name(a, b) = body` before anything is known about its parameters.
struct ParsedDefinition {
  std::string_view name;
  std::size_t offset = 0;
  std::vector<std::string_view> parameters;
  std::string_view text;  // the whole of it
  Tree body;
};

/// Parses one expression; the whole text must be used.
Result<Tree> parse_expression(const Source& source);

/// Parses definitions separated by `;` or newlines.
Result<std::vector<ParsedDefinition>> parse_definitions(const Source& source);

}  // namespace onepass::lang
