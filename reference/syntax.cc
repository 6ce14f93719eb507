// Recursive descent, one function a level of precedence, loosest first.
#include "reference/syntax.h"

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <stdexcept>

namespace onepass::reference {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument(what); }

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool starts_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

Syntax node(Op op, std::vector<Syntax> children) {
  Syntax syntax;
  syntax.kind = Syntax::Kind::operation;
  syntax.op = op;
  syntax.children = std::move(children);
  return syntax;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Syntax whole() {
    Syntax syntax = ternary();
    skip_space();
    if (at_ != text_.size()) refuse("cannot read on at: " + std::string(text_.substr(at_)));
    return syntax;
  }

  DefinitionSyntax definition() {
    DefinitionSyntax definition;
    definition.name = word();
    if (take("(")) {
      do {
        definition.parameters.push_back(word());
      } while (take(","));
      expect(")");
    }
    if (text_.substr(at_, 2) == "==") refuse("a definition is written name = expression");
    expect("=");
    definition.body = whole();
    return definition;
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
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

  Syntax ternary() {
    Syntax condition = disjunction();
    if (!take("?")) return condition;
    Syntax yes = ternary();
    expect(":");
    Syntax no = ternary();
    return node(Op::select, {condition, yes, no});
  }

  Syntax disjunction() {
    Syntax left = conjunction();
    while (take("|")) left = node(Op::logical_or, {left, conjunction()});
    return left;
  }

  Syntax conjunction() {
    Syntax left = comparison();
    while (take("&")) left = node(Op::logical_and, {left, comparison()});
    return left;
  }

  // a < b <= c means (a < b) & (b <= c).
  Syntax comparison() {
    static const std::pair<std::string_view, Op> symbols[] = {
        {"<=", Op::less_equal}, {">=", Op::greater_equal}, {"==", Op::equal},
        {"!=", Op::not_equal},  {"<", Op::less},           {">", Op::greater}};
    Syntax left = sum();
    std::vector<Syntax> links;
    for (bool found = true; found;) {
      found = false;
      for (const auto& [symbol, op] : symbols) {
        if (!take(symbol)) continue;
        Syntax right = sum();
        links.push_back(node(op, {left, right}));
        left = right;
        found = true;
        break;
      }
    }
    if (links.empty()) return left;
    Syntax all = links[0];
    for (std::size_t i = 1; i < links.size(); ++i) all = node(Op::logical_and, {all, links[i]});
    return all;
  }

  Syntax sum() {
    Syntax left = product();
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

  Syntax product() {
    Syntax left = unary();
    for (;;) {
      if (take("*")) {
        left = node(Op::multiply, {left, unary()});
      } else if (take("//")) {
        left = node(Op::floor_divide, {left, unary()});
      } else if (take("/")) {
        left = node(Op::divide, {left, unary()});
      } else if (take("%")) {
        left = node(Op::modulo, {left, unary()});
      } else {
        return left;
      }
    }
  }

  Syntax unary() {
    if (take("-")) return node(Op::negate, {unary()});
    if (peek() == '!' && text_.substr(at_, 2) != "!=") {
      ++at_;
      return node(Op::logical_not, {unary()});
    }
    return primary();
  }

  Syntax primary() {
    if (take("(")) {
      Syntax inner = ternary();
      expect(")");
      return inner;
    }
    if (is_digit(peek())) return number();
    Syntax syntax;
    syntax.kind = Syntax::Kind::word;
    syntax.word = word();
    if (peek() == '(') return list("(", ")", Syntax::Kind::call, syntax);
    if (peek() == '[') return list("[", "]", Syntax::Kind::index, syntax);
    return syntax;
  }

  Syntax list(std::string_view open, std::string_view close, Syntax::Kind kind, Syntax syntax) {
    expect(open);
    syntax.kind = kind;
    do {
      syntax.children.push_back(ternary());
    } while (take(","));
    expect(close);
    return syntax;
  }

  std::string word() {
    if (!starts_word(peek())) refuse("expected a name at: " + std::string(text_.substr(at_)));
    const std::size_t begin = at_;
    while (at_ < text_.size() && (starts_word(text_[at_]) || is_digit(text_[at_]))) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  // 7, 0.5, 1., 1e-3
  Syntax number() {
    const std::string rest(text_.substr(at_));
    std::size_t length = rest.find_first_not_of("0123456789");
    if (length == std::string::npos) length = rest.size();
    char* end = nullptr;
    errno = 0;
    Syntax syntax;
    if (length < rest.size() &&
        (rest[length] == '.' || rest[length] == 'e' || rest[length] == 'E')) {
      const double value = std::strtod(rest.c_str(), &end);
      // glibc reports results below the normal range too; only what is lost is refused.
      if (errno == ERANGE && (std::isinf(value) || value == 0.0)) refuse("out of range: " + rest);
      syntax.value = {Type::real, 0, value};
    } else {
      syntax.value = {Type::integer, std::strtoll(rest.c_str(), &end, 10), 0.0};
      if (errno == ERANGE) refuse("the integer is too large: " + rest);
    }
    at_ += static_cast<std::size_t>(end - rest.c_str());
    if (at_ < text_.size() && (starts_word(text_[at_]) || text_[at_] == '.')) {
      refuse("not a number: " + rest);
    }
    return syntax;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

bool is_blank(std::string_view text) {
  for (const char c : text) {
    if (!is_space(c)) return false;
  }
  return true;
}

}  // namespace

Syntax parse_syntax(std::string_view text) { return Parser(text).whole(); }

std::vector<DefinitionSyntax> parse_definitions(std::string_view text) {
  std::vector<DefinitionSyntax> out;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    const char c = at < text.size() ? text[at] : ';';
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (c != ';' && (c != '\n' || depth != 0)) continue;
    const std::string_view one = text.substr(begin, at - begin);
    if (!is_blank(one)) out.push_back(Parser(one).definition());
    begin = at + 1;
    depth = 0;
  }
  return out;
}

}  // namespace onepass::reference
