#include "reference/definitions.h"

#include <algorithm>
#include <map>
#include <stdexcept>

namespace onepass::reference {
namespace {

constexpr std::string_view named_forms = R"(
full = true
null = true
causal = k <= q
window(l, r) = (l < 0 | k >= q - l) & (r < 0 | k <= q + r)
chunked(n) = q // n == k // n
sliding_window_causal(n) = q - n < k <= q
sliding_window_noncausal(n) = k > q - n
chunked_causal(n) = causal & chunked(n)
prefix(n) = k < n | k <= q
prefix(n) = k < n[b] | k <= q
document(ids) = ids[b, q] == ids[b, k]
document(ids) = ids[token_q] == ids[token_k]
lengths(n) = k < n
lengths(n) = k < n[b]
sink_window(n, l) = k < n | window(l, 0)
dense(m) = m[b, h, row, col]
softcap(s, c) = c * tanh(s / c)
alibi(s, slopes) = s - slopes[h] * abs(q - k)
alibi(s, slopes) = s - slopes[b, h] * abs(q - k)
bias(s, m) = s + m[b, h, row, col]
)";

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument(what); }

const std::map<std::string, std::int64_t Pair::*>& fields() {
  static const std::map<std::string, std::int64_t Pair::*> names = {{"q", &Pair::q},
                                                                    {"k", &Pair::k},
                                                                    {"row", &Pair::row},
                                                                    {"col", &Pair::col},
                                                                    {"b", &Pair::b},
                                                                    {"h", &Pair::h},
                                                                    {"h_kv", &Pair::h_kv},
                                                                    {"s_q", &Pair::s_q},
                                                                    {"s_kv", &Pair::s_kv},
                                                                    {"token_q", &Pair::token_q},
                                                                    {"token_k", &Pair::token_k}};
  return names;
}

bool is_constant_word(const std::string& word) {
  return word == "true" || word == "false" || word == "inf";
}

Parameter* find(std::vector<Parameter>& parameters, const std::string& name) {
  for (Parameter& parameter : parameters) {
    if (parameter.name == name) return &parameter;
  }
  return nullptr;
}

void note_uses(const Syntax& syntax, std::vector<Parameter>& parameters) {
  Parameter* parameter = find(parameters, syntax.word);
  if (parameter && syntax.kind == Syntax::Kind::word) parameter->alone = true;
  if (parameter && syntax.kind == Syntax::Kind::index) {
    const int rank = static_cast<int>(syntax.children.size());
    if (parameter->rank != 0 && parameter->rank != rank) refuse(syntax.word + " has two ranks");
    parameter->rank = rank;
  }
  // A whole argument of another definition may be of any rank.
  const bool passes_on = syntax.kind == Syntax::Kind::call && !find_function(syntax.word);
  for (const Syntax& child : syntax.children) {
    if (!(passes_on && child.kind == Syntax::Kind::word)) note_uses(child, parameters);
  }
}

Definition checked(DefinitionSyntax&& syntax) {
  if (is_reserved(syntax.name)) refuse(syntax.name + " has a meaning of its own");
  Definition definition{syntax.name, {}, std::move(syntax.body)};
  for (const std::string& name : syntax.parameters) {
    if (find_function(name) || is_constant_word(name) || find(definition.parameters, name)) {
      refuse(name + " cannot be this parameter's name");
    }
    definition.parameters.push_back({name});
  }
  note_uses(definition.body, definition.parameters);
  for (const Parameter& parameter : definition.parameters) {
    if (parameter.rank > 0 && parameter.alone) refuse(parameter.name + " is array and number");
  }
  return definition;
}

// Whether some call could mean either.
bool overlap(const Definition& a, const Definition& b) {
  if (a.name != b.name || a.parameters.size() != b.parameters.size()) return false;
  for (std::size_t i = 0; i < a.parameters.size(); ++i) {
    const Parameter &x = a.parameters[i], &y = b.parameters[i];
    if ((x.rank || x.alone) && (y.rank || y.alone) && x.rank != y.rank) return false;
  }
  return true;
}

class Words {
 public:
  Words(const std::vector<Definition>& all, const std::vector<Argument>& arguments)
      : all_(all), arguments_(arguments) {}

  void check(const Definition& definition, const Syntax& syntax) const {
    if (!known(definition, syntax)) refuse("not a name here: " + syntax.word);
    for (const Syntax& child : syntax.children) check(definition, child);
  }

  bool is_argument(const std::string& word) const {
    return std::any_of(arguments_.begin(), arguments_.end(),
                       [&](const Argument& argument) { return argument.name == word; });
  }

 private:
  bool defined(const std::string& word, bool constants_only) const {
    return std::any_of(all_.begin(), all_.end(), [&](const Definition& definition) {
      return definition.name == word && (!constants_only || definition.parameters.empty());
    });
  }

  bool known(const Definition& definition, const Syntax& syntax) const {
    const std::string& word = syntax.word;
    if (syntax.kind == Syntax::Kind::call) return find_function(word) || defined(word, false);
    const bool bare = syntax.kind == Syntax::Kind::word;
    if (!bare && syntax.kind != Syntax::Kind::index) return true;
    const auto& parameters = definition.parameters;
    const bool parameter = std::any_of(parameters.begin(), parameters.end(),
                                       [&](const Parameter& p) { return p.name == word; });
    if (parameter || is_argument(word)) return true;
    return bare && ((is_reserved(word) && !find_function(word)) || defined(word, true));
  }

  const std::vector<Definition>& all_;
  const std::vector<Argument>& arguments_;
};

}  // namespace

const Function* find_function(const std::string& name) {
  static const std::map<std::string, Function> all = {
      {"abs", {Op::absolute, 1, true}},      {"min", {Op::minimum, 2, true}},
      {"max", {Op::maximum, 2, true}},       {"floor", {Op::floor, 1, true}},
      {"sqrt", {Op::square_root, 1, false}}, {"exp", {Op::exponential, 1, false}},
      {"log", {Op::logarithm, 1, false}},    {"tanh", {Op::hyperbolic_tangent, 1, false}},
      {"where", {Op::select, 3, true}}};
  const auto found = all.find(name);
  return found == all.end() ? nullptr : &found->second;
}

std::int64_t Pair::*find_field(const std::string& name) {
  const auto found = fields().find(name);
  return found == fields().end() ? nullptr : found->second;
}

bool is_reserved(const std::string& word) {
  return word == "s" || find_field(word) || find_function(word) || is_constant_word(word);
}

std::vector<Definition> all_definitions(std::string_view text,
                                        const std::vector<Argument>& arguments) {
  std::vector<Definition> all;
  const Words words(all, arguments);
  for (const std::string_view source : {named_forms, text}) {
    const std::size_t first = all.size();
    for (DefinitionSyntax& syntax : parse_definitions(source)) {
      Definition definition = checked(std::move(syntax));
      for (const Definition& other : all) {
        if (overlap(definition, other)) refuse(definition.name + " is defined already");
      }
      all.push_back(std::move(definition));
    }
    for (std::size_t i = first; i < all.size(); ++i) words.check(all[i], all[i].body);
  }
  for (const Definition& definition : all) {
    if (definition.parameters.empty() && words.is_argument(definition.name)) {
      refuse(definition.name + " is an argument and a definition");
    }
  }
  return all;
}

}  // namespace onepass::reference
