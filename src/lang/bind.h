// Syntax tree -> nodes: gives every word its meaning, expands definitions, checks types.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "lang/builder.h"
#include "lang/definitions.h"

namespace onepass::lang {

/// Binds one expression. The first error wins; after it every function returns -1 at once.
class Binder {
 public:
  Binder(const Source& source, Kind kind, std::span<const Argument> arguments,
         const Definitions& definitions)
      : source_(source),
        kind_(kind),
        arguments_(arguments),
        defined_(definitions),
        builder_(kind) {}

  Result<Program> bind(const Tree& tree);

 private:
  // What a parameter of a definition stands for: a node, or an array (then node is -1).
  struct Bound {
    std::int32_t node = -1;
    const Argument* array = nullptr;
    bool literal_zero = false;  // an error where it is a divisor
    bool reads_logit = false;   // an error where it is part of an index
  };
  // One expansion of a definition; null stands for the caller's own text.
  struct Frame {
    const Definition* definition;
    std::vector<Bound> bound;
    std::size_t offset;  // of the outermost call, in the caller's text
    const Frame* outer;
  };

  bool failed() const { return error_.has_value(); }
  std::int32_t fail(const Term& term, const std::string& message);

  std::int32_t value(const Tree& tree, std::int32_t term);
  std::int32_t word(const Term& term);
  std::int32_t index(const Tree& tree, const Term& term);
  void note_form_read(const Tree& tree, const Term& term, const Argument& array);
  std::int32_t call(const Tree& tree, const Term& term);
  std::int32_t function(const Tree& tree, const Term& term);
  std::int32_t expand(const Term& term, const Definition& definition, std::vector<Bound> bound);
  std::int32_t unary(const Tree& tree, const Term& term);
  std::int32_t chain(const Tree& tree, std::int32_t term);
  std::int32_t binary(const Term& term, std::int32_t left, std::int32_t right);
  std::int32_t compare(const Tree& tree, const Term& term);
  std::int32_t comparison(const Term& term, Token::Kind sign, std::int32_t a, std::int32_t b);
  std::int32_t choice(const Tree& tree, const Term& term);
  std::int32_t select(const Term& term, std::int32_t condition, std::int32_t yes, std::int32_t no);

  bool is_literal_zero(const Tree& tree, std::int32_t which) const;
  bool numbers(const Term& term, const std::string& sign, std::span<std::int32_t> nodes);
  std::int32_t number(const Argument& argument);
  const Argument* argument(std::string_view name) const;
  const Bound* parameter(std::string_view name) const;
  const Argument* array_called(std::string_view name) const;
  std::int32_t unknown(const Term& term);
  std::int32_t no_overload(const Term& term, std::span<const Bound> bound);

  Source source_;
  Kind kind_;
  std::span<const Argument> arguments_;
  const Definitions& defined_;
  Builder builder_;
  const Frame* frame_ = nullptr;
  int depth_ = 0;
  int terms_ = 0;
  int logit_reads_ = 0;
  std::vector<FormRead> form_reads_;
  std::optional<Status> error_;
};

}  // namespace onepass::lang
