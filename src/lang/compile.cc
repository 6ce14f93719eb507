#include "lang/compile.h"

#include <algorithm>

#include "lang/bind.h"
#include "lang/words.h"

namespace onepass::lang {
namespace {

constexpr std::size_t max_text_bytes = 65536;

Status check_text(std::string_view label, std::string_view text) {
  if (text.size() <= max_text_bytes) return {};
  return Status::invalid(std::string(label) + ": " + std::to_string(text.size()) +
                         " bytes of text; the limit is " + std::to_string(max_text_bytes) +
                         "; put large tables into an array");
}

// Arguments share their words with the language.
Status check_arguments(std::span<const Argument> arguments, const Definitions& definitions) {
  for (const Argument& argument : arguments) {
    const std::string_view name = argument.name;
    const auto refuse = [&](const std::string& why) {
      return Status::invalid("args: " + quoted(name, '\'') + " " + why);
    };
    bool word = !name.empty() && is_word_start(name[0]);
    for (const char c : name) word = word && is_word_part(c);
    if (!word) {
      return refuse("is not a name; names are letters, digits and _, no digit first; rename it");
    }
    if (is_reserved(name) || definitions.constant(name) != nullptr) {
      return refuse("has a meaning of its own in expressions; other names are allowed; rename it");
    }
    for (const Argument& other : arguments) {
      if (&other == &argument) break;
      if (other.name == name) return refuse("is given twice; give each name once; drop one");
    }
    const TensorView* view = std::get_if<TensorView>(&argument.value);
    if (view != nullptr && (view->rank < 0 || view->rank > max_rank)) {
      return refuse("has " + std::to_string(view->rank) +
                    " dims; arrays have 0 to 4 dims; reshape it");
    }
  }
  return {};
}

// The arguments that the expression or a definition of the caller's says. No definition of ours
// does.
std::vector<std::string> named_arguments(const Tree& tree, const Definitions& definitions,
                                         std::span<const Argument> arguments) {
  const auto says = [](const Tree& body, std::string_view name) {
    return std::any_of(body.terms.begin(), body.terms.end(), [name](const Term& term) {
      return term.text == name && (term.kind == Term::Kind::word || term.kind == Term::Kind::index);
    });
  };
  std::vector<std::string> named;
  for (const Argument& argument : arguments) {
    bool found = says(tree, argument.name);
    for (const auto& each : definitions.all()) {
      found |= !each->built_in && each->parameter(argument.name) == nullptr &&
               says(each->body, argument.name);
    }
    if (found) named.push_back(argument.name);
  }
  return named;
}

}  // namespace

Result<Program> compile(std::string_view text, Kind kind, std::span<const Argument> arguments,
                        std::string_view definitions) {
  const std::string_view label = kind == Kind::mask ? "mask" : "score";
  for (const Status& status : {check_text(label, text), check_text("definitions", definitions)}) {
    if (!status.ok()) return status;
  }
  const Result<Definitions> defined = Definitions::with(definitions, arguments);
  if (!defined.ok()) return defined.status();
  const Status status = check_arguments(arguments, defined.value());
  if (!status.ok()) return status;
  const Source source{label, text};
  // An empty score is the logit itself.
  const bool logit = kind == Kind::score && text.empty();
  const Result<Tree> tree = parse_expression(logit ? Source{label, "s"} : source);
  if (!tree.ok()) return tree.status();
  Result<Program> program = Binder(source, kind, arguments, defined.value()).bind(tree.value());
  if (program.ok()) {
    program.value().named = named_arguments(tree.value(), defined.value(), arguments);
  }
  return program;
}

}  // namespace onepass::lang
