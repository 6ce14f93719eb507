// The words of the language: built-in names, functions, and what a misspelt one may have meant.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lang/program.h"

namespace onepass::lang {

struct Function {
  std::string_view name;
  Op op;  // Op::select for where(c, a, b)
  int arguments;
  bool in_masks;  // exp, log, tanh and sqrt differ between machines, so masks may not use them
};

std::optional<Name> find_name(std::string_view word);
const Function* find_function(std::string_view word);
std::string_view spelling(Name name);
/// Operator sign or function name of an operation, "" for nodes without one.
std::string_view spelling(Op op);
/// "bool", "int" or "float".
std::string spelling(Type type);
/// true, false and inf.
bool is_constant_word(std::string_view word);

/// Words that no argument may take: built-in names, functions and constants.
bool is_reserved(std::string_view word);

std::vector<std::string_view> all_names();
std::vector<std::string_view> all_functions();

/// The words, separated by blanks.
std::string listed(std::span<const std::string_view> words);

/// `; did you mean causal?` for the closest word when one is close, else `otherwise` after its `;
/// `.
std::string suggestion(std::string_view word, std::span<const std::string_view> words,
                       std::string_view otherwise);

}  // namespace onepass::lang
