#include "lang/definitions.h"

#include <algorithm>

#include "lang/words.h"

namespace onepass::lang {

// The only place that knows what a named form means.
std::string_view built_in_definitions() {
  return R"(
full = true
null = true
causal = k <= q
window(l, r) = (l < 0 | k >= q - l) & (r < 0 | k <= q + r)
chunked(n) = q // n == k // n
chunked_causal(n) = causal & chunked(n)
sliding_window_causal(n) = q - n < k <= q
sliding_window_noncausal(n) = k > q - n
sink_window(n, l) = k < n | window(l, 0)
prefix(n) = k < n | k <= q
prefix(n) = k < n[b] | k <= q
lengths(n) = k < n
lengths(n) = k < n[b]
document(ids) = ids[token_q] == ids[token_k]
document(ids) = ids[b, q] == ids[b, k]
dense(m) = m[b, h, row, col]

softcap(s, c) = c * tanh(s / c)
alibi(s, slopes) = s - slopes[h] * abs(q - k)
alibi(s, slopes) = s - slopes[b, h] * abs(q - k)
bias(s, m) = s + m[b, h, row, col]
)";
}

namespace {

constexpr std::size_t max_definitions = 256;

// Two definitions that some call could mean both.
bool overlap(const Definition& a, const Definition& b) {
  if (a.name != b.name || a.parameters.size() != b.parameters.size()) return false;
  for (std::size_t i = 0; i < a.parameters.size(); ++i) {
    const ParameterUse& x = a.parameters[i];
    const ParameterUse& y = b.parameters[i];
    const bool x_known = x.rank > 0 || x.alone;
    const bool y_known = y.rank > 0 || y.alone;
    if (x_known && y_known && x.rank != y.rank) return false;
  }
  return true;
}

}  // namespace

ParameterUse* Definition::parameter(std::string_view word) {
  for (ParameterUse& use : parameters) {
    if (use.name == word) return &use;
  }
  return nullptr;
}
const ParameterUse* Definition::parameter(std::string_view word) const {
  return const_cast<Definition*>(this)->parameter(word);
}

std::string Definition::signature() const {
  std::string out(name);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    out += i == 0 ? "(" : ", ";
    out += parameters[i].name;
    if (parameters[i].rank == 0) continue;
    out += "[.";
    for (int dim = 1; dim < parameters[i].rank; ++dim) out += ",.";
    out += "]";
  }
  return parameters.empty() ? out : out + ")";
}

Status Definitions::add(ParsedDefinition&& parsed, const Source& source, bool built_in) {
  const auto fail = [&](std::size_t offset, const std::string& message) {
    return Status::invalid(source.place(offset) + ": " + message);
  };
  if (is_reserved(parsed.name)) {
    return fail(parsed.offset, quoted(parsed.name) +
                                   " has a meaning of its own; definitions take other names; "
                                   "rename it");
  }
  Definition out{parsed.name, {}, std::move(parsed.body), parsed.text, built_in};
  for (const std::string_view name : parsed.parameters) {
    if (find_function(name) != nullptr || is_constant_word(name)) {
      return fail(parsed.offset, quoted(name) +
                                     " has a meaning of its own; parameters take other "
                                     "names; rename it");
    }
    out.parameters.push_back({name});
  }
  std::vector<bool> is_argument(out.body.terms.size(), false);
  for (const Term& term : out.body.terms) {
    if (term.kind != Term::Kind::call || find_function(term.text) != nullptr) continue;
    for (const std::int32_t child : term.children) {
      is_argument[static_cast<std::size_t>(child)] = true;
    }
  }
  for (std::size_t i = 0; i < out.body.terms.size(); ++i) {
    const Term& term = out.body.terms[i];
    ParameterUse* use = out.parameter(term.text);
    if (use == nullptr) continue;
    if (term.kind == Term::Kind::word && is_argument[i]) {
      use->passed = true;
    } else if (term.kind == Term::Kind::word) {
      use->alone = true;
    } else if (term.kind == Term::Kind::index) {
      const int rank = static_cast<int>(term.children.size());
      if (use->rank != 0 && use->rank != rank) {
        return fail(term.offset, quoted(use->name) + " is used with " + std::to_string(rank) +
                                     " and with " + std::to_string(use->rank) +
                                     " dims; a parameter has one rank; write two definitions");
      }
      use->rank = rank;
    }
    if (use->alone && use->rank > 0) {
      return fail(term.offset, quoted(use->name) +
                                   " is used as an array and as a number; a parameter is one of "
                                   "them; write two definitions");
    }
  }
  for (const auto& other : all_) {
    if (!overlap(out, *other)) continue;
    return fail(parsed.offset, quoted(out.name) + " is defined already, as " +
                                   std::string(other->text) +
                                   "; overloads differ in the number of parameters or the rank of "
                                   "arrays; rename it");
  }
  all_.push_back(std::make_shared<const Definition>(std::move(out)));
  return {};
}

// Finds unknown words at once, not only where a definition is used.
Status Definitions::check_words(const Source& source, std::span<const Argument> arguments) const {
  for (const auto& each : all_) {
    const Definition& definition = *each;
    if (definition.built_in) continue;
    const auto is_argument = [&](std::string_view word) {
      return std::any_of(arguments.begin(), arguments.end(),
                         [&](const Argument& argument) { return argument.name == word; });
    };
    if (definition.parameters.empty() && is_argument(definition.name)) {
      const auto offset = static_cast<std::size_t>(definition.text.data() - source.text.data());
      return Status::invalid(source.place(offset) + ": " + quoted(definition.name) +
                             " is also an argument of this call; a word has one meaning; rename "
                             "one of them");
    }
    for (const Term& term : definition.body.terms) {
      const std::string_view word = term.text;
      const bool call = term.kind == Term::Kind::call;
      const bool bare = term.kind == Term::Kind::word;
      if (!call && !bare && term.kind != Term::Kind::index) continue;
      if (call ? find_function(word) != nullptr || any_named(word)
               : definition.parameter(word) != nullptr || is_argument(word)) {
        continue;
      }
      if (bare && (find_name(word) || is_constant_word(word) || constant(word) != nullptr)) {
        continue;
      }
      return Status::invalid(source.place(term.offset) + ": " +
                             unknown_word(term, &definition, arguments));
    }
  }
  return {};
}

std::string Definitions::unknown_word(const Term& term, const Definition* inside,
                                      std::span<const Argument> arguments) const {
  const std::string_view word = term.text;
  const std::string found = quoted(word);
  std::vector<std::string_view> known;
  if (term.kind == Term::Kind::call) {
    known = all_functions();
    for (const std::string_view name : names()) known.push_back(name);
    return found + " is not a function or a definition here; there are: " + listed(known) +
           suggestion(word, known, "define it among the call's definitions");
  }
  const bool bare = term.kind == Term::Kind::word;
  if (bare && find_function(word) != nullptr) {
    const auto needed = std::to_string(find_function(word)->arguments);
    return found + " is a function; its arguments (" + needed + ") stand in parentheses; write " +
           std::string(word) + "(...)";
  }
  if (bare && any_named(word)) return found + " takes arguments; write " + signatures(word);
  if (bare) known = all_names();
  if (inside != nullptr) {
    for (const ParameterUse& parameter : inside->parameters) known.push_back(parameter.name);
  }
  for (const Argument& argument : arguments) known.push_back(argument.name);
  const std::string pass_it = "pass it with the call, as the argument named " + std::string(word);
  const std::string shown = known.empty() ? "none" : listed(known);
  if (!bare) {
    return found + " is not an array here; arguments: " + shown + suggestion(word, known, pass_it);
  }
  for (const std::string_view name : names()) known.push_back(name);
  for (const std::string_view name : all_functions()) known.push_back(name);
  return found + " is not a name here; names: " + shown + suggestion(word, known, pass_it);
}

Result<Definitions> Definitions::with(std::string_view text, std::span<const Argument> arguments) {
  static const Result<Definitions> built_in = []() -> Result<Definitions> {
    const Source source{"definitions", built_in_definitions()};
    Result<std::vector<ParsedDefinition>> parsed = parse_definitions(source);
    if (!parsed.ok()) return parsed.status();
    Definitions out;
    for (ParsedDefinition& definition : parsed.value()) {
      const Status status = out.add(std::move(definition), source, true);
      if (!status.ok()) return status;
    }
    return out;
  }();
  if (!built_in.ok() || text.empty()) return built_in;
  Definitions out = built_in.value();
  const Source source{"definitions", text};
  Result<std::vector<ParsedDefinition>> parsed = parse_definitions(source);
  if (!parsed.ok()) return parsed.status();
  if (parsed.value().size() > max_definitions) {
    return Status::invalid("definitions: " + std::to_string(parsed.value().size()) +
                           " definitions; the limit is " + std::to_string(max_definitions) +
                           "; put large tables into an array");
  }
  for (ParsedDefinition& definition : parsed.value()) {
    const Status status = out.add(std::move(definition), source, false);
    if (!status.ok()) return status;
  }
  const Status status = out.check_words(source, arguments);
  if (!status.ok()) return status;
  return out;
}

const Definition* Definitions::constant(std::string_view name) const {
  for (const auto& definition : all_) {
    if (definition->name == name && definition->parameters.empty()) return definition.get();
  }
  return nullptr;
}

bool Definitions::any_named(std::string_view name) const {
  return std::any_of(all_.begin(), all_.end(),
                     [&](const auto& definition) { return definition->name == name; });
}

std::vector<std::string_view> Definitions::names() const {
  std::vector<std::string_view> out;
  for (const auto& definition : all_) {
    if (std::find(out.begin(), out.end(), definition->name) == out.end()) {
      out.push_back(definition->name);
    }
  }
  return out;
}

std::string Definitions::signatures(std::string_view name) const {
  std::string out;
  for (const auto& definition : all_) {
    if (definition->name != name) continue;
    if (!out.empty()) out += ", ";
    out += definition->signature();
  }
  return out;
}

}  // namespace onepass::lang
