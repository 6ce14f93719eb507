#include "lang/bind.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "lang/words.h"

namespace onepass::lang {
namespace {

constexpr std::int32_t none = -1;

std::string count(std::size_t n, const std::string& noun) {
  return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

int rank_of(const Argument* argument) { return std::get<TensorView>(argument->value).rank; }

// Whether a definition can take this argument for this parameter.
bool takes(const ParameterUse& use, const Argument* array) {
  if (array == nullptr) return use.rank == 0;
  return use.rank == rank_of(array) || (use.rank == 0 && !use.alone);
}

}  // namespace

Result<Program> Binder::bind(const Tree& tree) {
  const Term& top = tree.at(tree.root);
  std::int32_t root = value(tree, tree.root);
  if (!failed()) {
    const Type found = builder_.type(root);
    if (kind_ == Kind::mask && found != Type::boolean) {
      fail(top,
           "this mask has type " + spelling(found) +
               "; a mask has type bool, true = this key is visible; compare it with something");
    }
    if (kind_ == Kind::score && found == Type::boolean) {
      fail(top,
           "this score has type bool; a score has type float, the new logit; choose numbers "
           "with where(c, a, b) or pass it as the mask");
    }
  }
  if (failed()) return *error_;
  if (kind_ == Kind::score) root = builder_.as_real(root);
  Program out = builder_.finish(root);
  if (out.nodes.size() > static_cast<std::size_t>(max_terms)) {
    fail(top, "this expands to " + std::to_string(out.nodes.size()) + " operations; the limit is " +
                  std::to_string(max_terms) + "; put large tables into an array");
    return *error_;
  }
  out.text = std::string(source_.text);
  out.form_reads = std::move(form_reads_);
  return out;
}

std::int32_t Binder::fail(const Term& term, const std::string& message) {
  if (failed()) return none;
  const std::size_t offset = frame_ != nullptr ? frame_->offset : term.offset;
  std::string where = source_.place(offset) + ": ";
  if (frame_ != nullptr) where += "in " + std::string(frame_->definition->text) + ": ";
  error_ = Status::invalid(where + message);
  return none;
}

std::int32_t Binder::value(const Tree& tree, std::int32_t which) {
  if (failed()) return none;
  const Term& term = tree.at(which);
  if (++terms_ > max_terms) {
    return fail(term, "more than " + std::to_string(max_terms) +
                          " terms after definitions are expanded; that is the limit; put large "
                          "tables into an array");
  }
  if (++depth_ > 2 * max_nesting) {
    return fail(term, "nested more than " + std::to_string(2 * max_nesting) +
                          " deep after definitions are expanded; that is the limit; simplify it");
  }
  std::int32_t out = none;
  switch (term.kind) {
    case Term::Kind::integer:
      out = builder_.literal(term.integer);
      break;
    case Term::Kind::real:
      out = builder_.literal(term.real);
      break;
    case Term::Kind::word:
      out = word(term);
      break;
    case Term::Kind::call:
      out = call(tree, term);
      break;
    case Term::Kind::index:
      out = index(tree, term);
      break;
    case Term::Kind::unary:
      out = unary(tree, term);
      break;
    case Term::Kind::binary:
      out = chain(tree, which);
      break;
    case Term::Kind::compare:
      out = compare(tree, term);
      break;
    case Term::Kind::choice:
      out = choice(tree, term);
      break;
  }
  --depth_;
  return failed() ? none : out;
}

const Argument* Binder::argument(std::string_view name) const {
  for (const Argument& argument : arguments_) {
    if (argument.name == name) return &argument;
  }
  return nullptr;
}

const Binder::Bound* Binder::parameter(std::string_view name) const {
  if (frame_ == nullptr) return nullptr;
  const std::vector<ParameterUse>& parameters = frame_->definition->parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].name == name) return &frame_->bound[i];
  }
  return nullptr;
}

// The array of 1 or more dims that a word stands for here, or null.
const Argument* Binder::array_called(std::string_view name) const {
  if (const Bound* bound = parameter(name)) return bound->array;
  if (find_name(name)) return nullptr;
  const Argument* found = argument(name);
  const bool array = found != nullptr && std::holds_alternative<TensorView>(found->value);
  return array && rank_of(found) > 0 ? found : nullptr;
}

std::int32_t Binder::number(const Argument& argument) {
  Parameter parameter{argument.name, Type::boolean, 0, 0.0};
  if (const bool* value = std::get_if<bool>(&argument.value)) {
    parameter.integer = *value ? 1 : 0;
  } else if (const std::int64_t* value = std::get_if<std::int64_t>(&argument.value)) {
    parameter.type = Type::integer;
    parameter.integer = *value;
  } else {
    parameter.type = Type::real;
    parameter.real = std::get<double>(argument.value);
  }
  return builder_.argument(parameter);
}

std::int32_t Binder::word(const Term& term) {
  const std::string_view text = term.text;
  if (const Argument* array = array_called(text)) {
    const std::string dims = count(static_cast<std::size_t>(rank_of(array)), "dim");
    return fail(term, quoted(text) + " is an array of " + dims +
                          "; a number is expected here; index it, as in " + std::string(text) +
                          "[b, q]");
  }
  if (const Bound* bound = parameter(text)) {
    logit_reads_ += bound->reads_logit ? 1 : 0;
    return bound->node;
  }
  if (text == "true" || text == "false") return builder_.constant(text == "true");
  if (text == "inf") return builder_.constant(std::numeric_limits<double>::infinity());
  if (const std::optional<Name> name = find_name(text)) {
    if (*name == Name::s && kind_ == Kind::mask) {
      return fail(term,
                  "\"s\" is the logit, which a mask does not see; a mask depends on "
                  "positions, lengths and arguments; use a score that is -inf where hidden");
    }
    logit_reads_ += *name == Name::s ? 1 : 0;
    return builder_.name(*name);
  }
  if (const Argument* found = argument(text)) {
    if (!std::holds_alternative<TensorView>(found->value)) return number(*found);
    return builder_.load(builder_.array(found->name, std::get<TensorView>(found->value)), {});
  }
  if (const Definition* definition = defined_.constant(text)) return expand(term, *definition, {});
  return unknown(term);
}

std::int32_t Binder::unknown(const Term& term) {
  const Definition* inside = frame_ != nullptr ? frame_->definition : nullptr;
  return fail(term, defined_.unknown_word(term, inside, arguments_));
}

std::int32_t Binder::index(const Tree& tree, const Term& term) {
  const Argument* array = array_called(term.text);
  if (array == nullptr) {
    if (parameter(term.text) == nullptr && !find_name(term.text) && !argument(term.text)) {
      return unknown(term);
    }
    return fail(term, quoted(term.text) + " is a number; only arrays are indexed; leave out the [");
  }
  const auto& view = std::get<TensorView>(array->value);
  if (term.children.size() != static_cast<std::size_t>(view.rank)) {
    return fail(term, quoted(term.text) + " has " +
                          count(static_cast<std::size_t>(view.rank), "dim") + ", found " +
                          count(term.children.size(), "index value") +
                          "; give one value for each dim");
  }
  std::vector<std::int32_t> places;
  for (const std::int32_t child : term.children) {
    const int logit_reads = logit_reads_;
    const std::int32_t place = value(tree, child);
    if (failed()) return none;
    if (builder_.type(place) != Type::integer) {
      return fail(tree.at(child), "an index of " + quoted(term.text) + " has type " +
                                      spelling(builder_.type(place)) +
                                      "; indices are ints; use names such as q, k, b, h");
    }
    // By the words: whether s would be simplified away does not matter.
    if (logit_reads_ > logit_reads) {
      return fail(tree.at(child),
                  "an index of " + quoted(term.text) +
                      " depends on s; indices may use any other name; write it without s");
    }
    places.push_back(place);
  }
  if (frame_ != nullptr && frame_->definition->built_in) note_form_read(tree, term, *array);
  return builder_.load(builder_.array(array->name, view), places);
}

void Binder::note_form_read(const Tree& tree, const Term& term, const Argument& array) {
  const auto& view = std::get<TensorView>(array.value);
  FormRead read{frame_->definition->text, array.name, view.rank, view.shape, {}};
  for (std::size_t dim = 0; dim < term.children.size(); ++dim) {
    const Term& at = tree.at(term.children[dim]);
    const std::optional<Name> name =
        at.kind == Term::Kind::word ? find_name(at.text) : std::nullopt;
    read.index[dim] = name.value_or(Name::s);
  }
  form_reads_.push_back(read);
}

std::int32_t Binder::call(const Tree& tree, const Term& term) {
  if (find_function(term.text) != nullptr) return function(tree, term);
  if (!defined_.any_named(term.text)) return unknown(term);
  std::vector<Bound> bound;
  for (const std::int32_t child : term.children) {
    const Term& given = tree.at(child);
    Bound one;
    const int logit_reads = logit_reads_;
    if (given.kind == Term::Kind::word) one.array = array_called(given.text);
    if (one.array == nullptr) one.node = value(tree, child);
    if (failed()) return none;
    one.literal_zero = is_literal_zero(tree, child);
    one.reads_logit = logit_reads_ > logit_reads;
    bound.push_back(one);
  }
  for (const auto& each : defined_.all()) {
    const Definition& definition = *each;
    if (definition.name != term.text || definition.parameters.size() != bound.size()) continue;
    bool fits = true;
    for (std::size_t i = 0; i < bound.size(); ++i) {
      fits = fits && takes(definition.parameters[i], bound[i].array);
    }
    if (fits) return expand(term, definition, std::move(bound));
  }
  return no_overload(term, bound);
}

std::int32_t Binder::no_overload(const Term& term, std::span<const Bound> bound) {
  std::string given;
  for (const Bound& one : bound) {
    if (!given.empty()) given += ", ";
    given += one.array == nullptr
                 ? "a number"
                 : "an array of " + count(static_cast<std::size_t>(rank_of(one.array)), "dim");
  }
  return fail(term, quoted(term.text) + " does not take (" + given + "); write " +
                        defined_.signatures(term.text));
}

std::int32_t Binder::expand(const Term& term, const Definition& definition,
                            std::vector<Bound> bound) {
  for (const Frame* frame = frame_; frame != nullptr; frame = frame->outer) {
    if (frame->definition == &definition) {
      return fail(term, quoted(definition.name) +
                            " uses itself; definitions are not recursive; write it out");
    }
  }
  const Frame frame{&definition, std::move(bound), frame_ != nullptr ? frame_->offset : term.offset,
                    frame_};
  frame_ = &frame;
  const std::int32_t out = value(definition.body, definition.body.root);
  frame_ = frame.outer;
  return out;
}

}  // namespace onepass::lang
