#include "lang/words.h"

#include <algorithm>
#include <numeric>

namespace onepass::lang {
namespace {

struct NameWord {
  std::string_view text;
  Name name;
};

// In the order of the enumeration.
constexpr NameWord names[] = {
    {"q", Name::q},
    {"k", Name::k},
    {"row", Name::row},
    {"col", Name::col},
    {"b", Name::b},
    {"h", Name::h},
    {"h_kv", Name::h_kv},
    {"s_q", Name::s_q},
    {"s_kv", Name::s_kv},
    {"token_q", Name::token_q},
    {"token_k", Name::token_k},
    {"s", Name::s},
};

constexpr Function functions[] = {
    {"abs", Op::absolute, 1, true},      {"min", Op::minimum, 2, true},
    {"max", Op::maximum, 2, true},       {"floor", Op::floor, 1, true},
    {"sqrt", Op::square_root, 1, false}, {"exp", Op::exponential, 1, false},
    {"log", Op::logarithm, 1, false},    {"tanh", Op::hyperbolic_tangent, 1, false},
    {"where", Op::select, 3, true},
};

constexpr std::string_view constants[] = {"true", "false", "inf"};

// Levenshtein's distance.
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> above(b.size() + 1);
  std::iota(above.begin(), above.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::vector<std::size_t> here(b.size() + 1, i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      here[j] = std::min({change, above[j] + 1, here[j - 1] + 1});
    }
    above = std::move(here);
  }
  return above.back();
}

}  // namespace

std::optional<Name> find_name(std::string_view word) {
  for (const NameWord& entry : names) {
    if (entry.text == word) return entry.name;
  }
  return std::nullopt;
}

const Function* find_function(std::string_view word) {
  for (const Function& function : functions) {
    if (function.name == word) return &function;
  }
  return nullptr;
}

std::string_view spelling(Name name) { return names[static_cast<std::size_t>(name)].text; }

std::string_view spelling(Op op) {
  switch (op) {
    case Op::negate:
    case Op::subtract:
      return "-";
    case Op::add:
      return "+";
    case Op::multiply:
      return "*";
    case Op::divide:
      return "/";
    case Op::floor_divide:
      return "//";
    case Op::modulo:
      return "%";
    case Op::logical_not:
      return "!";
    case Op::logical_and:
      return "&";
    case Op::logical_or:
      return "|";
    case Op::less:
      return "<";
    case Op::less_equal:
      return "<=";
    case Op::equal:
      return "==";
    case Op::not_equal:
      return "!=";
    case Op::select:
      return "?:";
    default:
      break;
  }
  for (const Function& function : functions) {
    if (function.op == op) return function.name;
  }
  return "";
}

std::string spelling(Type type) {
  return type == Type::boolean ? "bool" : type == Type::integer ? "int" : "float";
}

bool is_constant_word(std::string_view word) {
  return std::find(std::begin(constants), std::end(constants), word) != std::end(constants);
}

bool is_reserved(std::string_view word) {
  return find_name(word) || find_function(word) != nullptr || is_constant_word(word);
}

std::vector<std::string_view> all_names() {
  std::vector<std::string_view> out;
  for (const NameWord& entry : names) out.push_back(entry.text);
  return out;
}

std::vector<std::string_view> all_functions() {
  std::vector<std::string_view> out;
  for (const Function& function : functions) out.push_back(function.name);
  return out;
}

std::string listed(std::span<const std::string_view> words) {
  std::string out;
  for (const std::string_view word : words) {
    if (!out.empty()) out += ' ';
    out += word;
  }
  return out;
}

std::string suggestion(std::string_view word, std::span<const std::string_view> words,
                       std::string_view otherwise) {
  const std::string other = "; " + std::string(otherwise);
  if (word.size() > 40) return other;
  // One edit in a short word, up to three in a long one; never as many as the word has letters.
  const std::size_t limit = word.size() <= 1 ? 0 : std::min<std::size_t>(3, 1 + word.size() / 4);
  std::size_t best = limit + 1;
  std::string_view found;
  for (const std::string_view candidate : words) {
    const std::size_t distance = edits(word, candidate);
    if (distance < best) {
      best = distance;
      found = candidate;
    }
  }
  return found.empty() ? other : "; did you mean " + std::string(found) + "?";
}

}  // namespace onepass::lang
