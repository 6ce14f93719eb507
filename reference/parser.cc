// Text -> tree by recursive descent; a call of a definition is replaced by its body.
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <map>
#include <stdexcept>

#include "reference/expression.h"

namespace onepass::reference {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument(what); }

/// `rank` is what the last parameter must be: 0 a number, n an array of n dims, -1 anything.
struct Definition {
  std::string name;
  std::vector<std::string> parameters;
  int rank = -1;
  std::string body;
};

const std::vector<Definition>& named_forms() {
  static const std::vector<Definition> forms = {
      {"full", {}, -1, "true"},
      {"null", {}, -1, "true"},
      {"causal", {}, -1, "k <= q"},
      {"window", {"l", "r"}, -1, "(l < 0 | k >= q - l) & (r < 0 | k <= q + r)"},
      {"chunked", {"n"}, -1, "q // n == k // n"},
      {"sliding_window_causal", {"n"}, -1, "q - n < k <= q"},
      {"sliding_window_noncausal", {"n"}, -1, "k > q - n"},
      {"chunked_causal", {"n"}, -1, "causal & chunked(n)"},
      {"prefix", {"n"}, 0, "k < n | k <= q"},
      {"prefix", {"n"}, 1, "k < n[b] | k <= q"},
      {"document", {"ids"}, 2, "ids[b, q] == ids[b, k]"},
      {"document", {"ids"}, 1, "ids[token_q] == ids[token_k]"},
      {"lengths", {"n"}, 1, "k < n[b]"},
      {"sink_window", {"n", "l"}, -1, "k < n | window(l, 0)"},
      {"dense", {"m"}, 4, "m[b, h, row, col]"},
      {"softcap", {"s", "c"}, -1, "c * tanh(s / c)"},
      {"alibi", {"s", "slopes"}, 1, "s - slopes[h] * abs(q - k)"},
      {"alibi", {"s", "slopes"}, 2, "s - slopes[b, h] * abs(q - k)"},
      {"bias", {"s", "m"}, 4, "s + m[b, h, row, col]"},
  };
  return forms;
}

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
                                                                    {"s", nullptr},
                                                                    {"token_q", &Pair::token_q},
                                                                    {"token_k", &Pair::token_k}};
  return names;
}

struct Function {
  Op op;
  std::size_t operands;
  bool in_masks;
};

const std::map<std::string, Function>& functions() {
  static const std::map<std::string, Function> all = {
      {"abs", {Op::absolute, 1, true}},      {"min", {Op::minimum, 2, true}},
      {"max", {Op::maximum, 2, true}},       {"floor", {Op::floor, 1, true}},
      {"sqrt", {Op::square_root, 1, false}}, {"exp", {Op::exponential, 1, false}},
      {"log", {Op::logarithm, 1, false}},    {"tanh", {Op::hyperbolic_tangent, 1, false}},
      {"where", {Op::select, 3, true}}};
  return all;
}

bool reads_logit(const Tree& tree) {
  if (tree.op == Op::name && tree.field == nullptr) return true;
  for (const Tree& child : tree.children) {
    if (reads_logit(child)) return true;
  }
  return false;
}

Tree node(Op op, std::vector<Tree> children) {
  Tree tree;
  tree.op = op;
  tree.children = std::move(children);
  return tree;
}

using Bindings = std::map<std::string, Tree>;

struct Context {
  Kind kind;
  const std::vector<Argument>& arguments;
  std::vector<Definition> definitions;  // the caller's first
};

class Parser {
 public:
  Parser(std::string_view text, const Context& context, const Bindings& bindings, int depth)
      : text_(text), context_(context), bindings_(bindings), depth_(depth) {
    if (depth > 64) refuse("definitions call each other without end");
  }

  Tree whole() {
    Tree tree = ternary();
    skip_space();
    if (at_ != text_.size()) refuse("cannot read on at: " + std::string(text_.substr(at_)));
    check_values(tree);
    return tree;
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool take(std::string_view symbol) {
    skip_space();
    if (text_.substr(at_, symbol.size()) != symbol) return false;
    at_ += symbol.size();
    return true;
  }
  void expect(std::string_view symbol) {
    if (!take(symbol)) refuse("expected " + std::string(symbol));
  }
  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  Tree ternary() {
    Tree condition = disjunction();
    if (!take("?")) return condition;
    Tree yes = ternary();
    expect(":");
    Tree no = ternary();
    return node(Op::select, {condition, yes, no});
  }

  Tree disjunction() {
    Tree left = conjunction();
    while (take("|")) left = node(Op::logical_or, {left, conjunction()});
    return left;
  }

  Tree conjunction() {
    Tree left = comparison();
    while (take("&")) left = node(Op::logical_and, {left, comparison()});
    return left;
  }

  // a < b <= c means (a < b) & (b <= c).
  Tree comparison() {
    static const std::pair<std::string_view, Op> symbols[] = {
        {"<=", Op::less_equal}, {">=", Op::greater_equal}, {"==", Op::equal},
        {"!=", Op::not_equal},  {"<", Op::less},           {">", Op::greater}};
    Tree left = sum();
    std::vector<Tree> links;
    for (bool found = true; found;) {
      found = false;
      for (const auto& [symbol, op] : symbols) {
        if (!take(symbol)) continue;
        Tree right = sum();
        links.push_back(node(op, {left, right}));
        left = right;
        found = true;
        break;
      }
    }
    if (links.empty()) return left;
    Tree all = links[0];
    for (std::size_t i = 1; i < links.size(); ++i) all = node(Op::logical_and, {all, links[i]});
    return all;
  }

  Tree sum() {
    Tree left = product();
    for (;;) {
      if (take("+")) {
        left = node(Op::add, {left, product()});
      } else if (take("-")) {
        left = node(Op::subtract, {left, product()});
      } else {
        return left;
      }
    }
  }

  Tree product() {
    Tree left = unary();
    for (;;) {
      if (take("*")) {
        left = node(Op::multiply, {left, unary()});
      } else if (take("//")) {
        left = node(Op::floor_divide, {left, nonzero(unary())});
      } else if (take("/")) {
        left = node(Op::divide, {left, unary()});
      } else if (take("%")) {
        left = node(Op::modulo, {left, nonzero(unary())});
      } else {
        return left;
      }
    }
  }

  static Tree nonzero(Tree divisor) {
    const Value& value = divisor.value;
    if (divisor.op == Op::number && value.integer == 0 && value.real == 0.0) {
      refuse("the divisor is 0");
    }
    return divisor;
  }

  Tree unary() {
    if (take("-")) return node(Op::negate, {unary()});
    if (peek() == '!' && text_.substr(at_, 2) != "!=") {
      ++at_;
      return node(Op::logical_not, {unary()});
    }
    return primary();
  }

  Tree primary() {
    if (take("(")) {
      Tree inner = ternary();
      expect(")");
      return inner;
    }
    const char next = peek();
    if (std::isdigit(static_cast<unsigned char>(next)) || next == '.') return number();
    if (std::isalpha(static_cast<unsigned char>(next)) || next == '_') return named(word());
    refuse("expected a value at: " + std::string(text_.substr(at_)));
  }

  std::string word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) {
      ++at_;
    }
    return std::string(text_.substr(begin, at_ - begin));
  }

  Tree number() {
    const std::string rest(text_.substr(at_));
    std::size_t length = rest.find_first_not_of("0123456789");
    if (length == std::string::npos) length = rest.size();
    char* end = nullptr;
    errno = 0;
    Tree tree;
    if (length < rest.size() && (rest[length] == '.' || std::tolower(rest[length]) == 'e')) {
      tree.value = {Type::real, 0, std::strtod(rest.c_str(), &end)};
    } else {
      tree.value = {Type::integer, std::strtoll(rest.c_str(), &end, 10), 0.0};
      if (errno == ERANGE) refuse("the integer is too large: " + rest);
    }
    at_ += static_cast<std::size_t>(end - rest.c_str());
    return tree;
  }

  Tree named(const std::string& name) {
    if (const auto bound = bindings_.find(name); bound != bindings_.end()) {
      return indexed(bound->second);
    }
    if (peek() == '(') return call(name);
    Tree tree;
    if (name == "true" || name == "false") {
      tree.value = {Type::boolean, name == "true" ? 1 : 0, 0.0};
      return tree;
    }
    if (name == "inf") {
      tree.value = {Type::real, 0, std::numeric_limits<double>::infinity()};
      return tree;
    }
    if (const auto field = fields().find(name); field != fields().end()) {
      tree.op = Op::name;
      tree.field = field->second;
      if (!tree.field && context_.kind == Kind::mask) refuse("a mask has no s");
      return tree;
    }
    for (const Argument& argument : context_.arguments) {
      if (argument.name == name) return indexed(argument_tree(argument));
    }
    return expand(name, {});
  }

  static Tree argument_tree(const Argument& argument) {
    Tree tree;
    if (const auto* array = std::get_if<Array>(&argument.value)) {
      tree.op = Op::array;
      tree.array = array;
    } else if (const auto* flag = std::get_if<bool>(&argument.value)) {
      tree.value = {Type::boolean, *flag ? 1 : 0, 0.0};
    } else if (const auto* integer = std::get_if<std::int64_t>(&argument.value)) {
      tree.value = {Type::integer, *integer, 0.0};
    } else {
      tree.value = {Type::real, 0, std::get<double>(argument.value)};
    }
    return tree;
  }

  Tree indexed(Tree tree) {
    if (!take("[")) return tree;
    if (tree.op != Op::array || !tree.children.empty()) refuse("only an array takes an index");
    do {
      tree.children.push_back(ternary());
      if (reads_logit(tree.children.back())) refuse("an index may not use s");
    } while (take(","));
    expect("]");
    return tree;
  }

  Tree call(const std::string& name) {
    expect("(");
    std::vector<Tree> operands;
    if (!take(")")) {
      do {
        operands.push_back(ternary());
      } while (take(","));
      expect(")");
    }
    const auto found = functions().find(name);
    if (found == functions().end()) return expand(name, operands);
    if (operands.size() != found->second.operands) refuse(name + ": wrong number of operands");
    if (!found->second.in_masks && context_.kind == Kind::mask) refuse(name + " in a mask");
    return node(found->second.op, operands);
  }

  Tree expand(const std::string& name, const std::vector<Tree>& operands) {
    int rank = 0;
    if (!operands.empty() && operands.back().op == Op::array && operands.back().children.empty()) {
      rank = static_cast<int>(operands.back().array->shape.size());
    }
    for (const Definition& definition : context_.definitions) {
      if (definition.name != name || definition.parameters.size() != operands.size()) continue;
      if (definition.rank >= 0 && definition.rank != rank) continue;
      Bindings bindings;
      for (std::size_t i = 0; i < operands.size(); ++i) {
        bindings[definition.parameters[i]] = operands[i];
      }
      return Parser(definition.body, context_, bindings, depth_ + 1).whole();
    }
    refuse("not a name here: " + name);
  }

  // A whole array is an operand of a definition only, never a value.
  static void check_values(const Tree& tree) {
    if (tree.op == Op::array && tree.children.size() != tree.array->shape.size()) {
      refuse("an array needs one index for each dim");
    }
    for (const Tree& child : tree.children) check_values(child);
  }

  std::string_view text_;
  const Context& context_;
  const Bindings& bindings_;
  int depth_;
  std::size_t at_ = 0;
};

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\r");
  const auto end = text.find_last_not_of(" \t\r");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

// `name(a, b) = body` or `name = body`.
Definition read_definition(const std::string& line) {
  const auto equals = line.find('=');
  if (equals == std::string::npos) refuse("a definition needs `=`: " + line);
  std::string head = trimmed(line.substr(0, equals));
  Definition definition;
  definition.body = line.substr(equals + 1);
  const auto open = head.find('(');
  definition.name = trimmed(head.substr(0, open));
  if (open == std::string::npos) return definition;
  if (head.back() != ')') refuse("a definition's head must end with `)`: " + line);
  std::string parameters = head.substr(open + 1, head.size() - open - 2);
  for (std::size_t begin = 0; begin <= parameters.size();) {
    std::size_t end = parameters.find(',', begin);
    if (end == std::string::npos) end = parameters.size();
    const std::string parameter = trimmed(parameters.substr(begin, end - begin));
    if (!parameter.empty()) definition.parameters.push_back(parameter);
    begin = end + 1;
  }
  return definition;
}

}  // namespace

Tree parse(std::string_view text, Kind kind, const std::vector<Argument>& arguments,
           std::string_view definitions) {
  Context context{kind, arguments, {}};
  for (std::size_t begin = 0; begin <= definitions.size();) {
    std::size_t end = definitions.find_first_of(";\n", begin);
    if (end == std::string_view::npos) end = definitions.size();
    const std::string line = trimmed(std::string(definitions.substr(begin, end - begin)));
    if (!line.empty()) context.definitions.push_back(read_definition(line));
    begin = end + 1;
  }
  const auto& forms = named_forms();
  context.definitions.insert(context.definitions.end(), forms.begin(), forms.end());
  const Bindings none;
  return Parser(text, context, none, 0).whole();
}

}  // namespace onepass::reference
