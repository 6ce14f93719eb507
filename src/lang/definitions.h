// Named forms: `causal`, `window(l, r)`, ... are written in the language itself.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lang/parse.h"
#include "onepass/attention.h"

namespace onepass::lang {

/// How a definition uses one of its parameters; overloads of one length differ in it.
struct ParameterUse {
  std::string_view name;
  int rank = 0;         // dims when used as `name[i, j]`; 0 when it never is
  bool alone = false;   // used as a value: a number, an expression, or an array of 0 dims
  bool passed = false;  // handed on to another definition, which decides
};

struct Definition {
  std::string_view name;
  std::vector<ParameterUse> parameters;
  Tree body;
  std::string_view text;  // `causal = k <= q`
  bool built_in = false;
  ParameterUse* parameter(std::string_view word);
  const ParameterUse* parameter(std::string_view word) const;
  std::string signature() const;  // `document(ids[.,.])`
};

class Definitions {
 public:
  /// The named forms and the caller's own definitions. The text must outlive the result.
  static Result<Definitions> with(std::string_view text, std::span<const Argument> arguments);

  std::span<const std::shared_ptr<const Definition>> all() const { return all_; }
  /// Without parameters, used as a bare word.
  const Definition* constant(std::string_view name) const;
  bool any_named(std::string_view name) const;
  std::vector<std::string_view> names() const;
  /// `prefix(n), prefix(n[.])`
  std::string signatures(std::string_view name) const;
  /// What to say about a word without a meaning: what there is, and which was meant perhaps.
  std::string unknown_word(const Term& term, const Definition* inside,
                           std::span<const Argument> arguments) const;

 private:
  Status add(ParsedDefinition&& parsed, const Source& source, bool built_in);
  Status check_words(const Source& source, std::span<const Argument> arguments) const;
  // Shared, because every call starts with all the named forms.
  std::vector<std::shared_ptr<const Definition>> all_;
};

/// The text of the named forms, one definition a line.
std::string_view built_in_definitions();

}  // namespace onepass::lang
