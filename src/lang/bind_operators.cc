// The operators and functions of Binder: their operand types, and the nodes they become.
#include "lang/bind.h"
#include "lang/fold.h"
#include "lang/words.h"

namespace onepass::lang {
namespace {

constexpr std::int32_t none = -1;

Op operation(Token::Kind sign) {
  switch (sign) {
    case Token::Kind::bar:
      return Op::logical_or;
    case Token::Kind::ampersand:
      return Op::logical_and;
    case Token::Kind::plus:
      return Op::add;
    case Token::Kind::minus:
      return Op::subtract;
    case Token::Kind::star:
      return Op::multiply;
    case Token::Kind::slash:
      return Op::divide;
    case Token::Kind::slash_slash:
      return Op::floor_divide;
    default:
      return Op::modulo;
  }
}

bool is_division(Op op) { return op == Op::divide || op == Op::floor_divide || op == Op::modulo; }

}  // namespace

// Checks that all are numbers; converts ints to floats when one is a float.
bool Binder::numbers(const Term& term, const std::string& sign, std::span<std::int32_t> nodes) {
  bool real = false;
  for (const std::int32_t node : nodes) {
    const Type type = builder_.type(node);
    if (type == Type::boolean) {
      fail(term, sign +
                     " takes numbers, found bool; only & | ! == != ?: take bool; turn it into a "
                     "number with where(c, 1, 0)");
      return false;
    }
    real = real || type == Type::real;
  }
  for (std::int32_t& node : nodes) {
    if (real) node = builder_.as_real(node);
  }
  return true;
}

std::int32_t Binder::unary(const Tree& tree, const Term& term) {
  std::int32_t operand[] = {value(tree, term.children[0])};
  if (failed()) return none;
  if (term.operators[0] == Token::Kind::minus) {
    return numbers(term, "-", operand) ? builder_.unary(Op::negate, operand[0]) : none;
  }
  const Type type = builder_.type(operand[0]);
  if (type != Type::boolean) {
    return fail(term, "! takes bool, found " + spelling(type) + "; compare it with something");
  }
  return builder_.unary(Op::logical_not, operand[0]);
}

bool Binder::is_literal_zero(const Tree& tree, std::int32_t which) const {
  const Term& term = tree.at(which);
  if (term.kind == Term::Kind::integer) return term.integer == 0;
  if (term.kind == Term::Kind::real) return rounded(kind_, term.real) == 0.0;
  if (term.kind == Term::Kind::unary) return is_literal_zero(tree, term.children[0]);
  const Bound* bound = term.kind == Term::Kind::word ? parameter(term.text) : nullptr;
  return bound != nullptr && bound->literal_zero;
}

// `a | b | c` leans to the left and may be long: its left operands are walked in a loop.
std::int32_t Binder::chain(const Tree& tree, std::int32_t which) {
  std::vector<std::int32_t> terms;
  std::int32_t left = which;
  while (tree.at(left).kind == Term::Kind::binary) {
    terms.push_back(left);
    left = tree.at(left).children[0];
  }
  std::int32_t out = value(tree, left);
  for (auto term = terms.rbegin(); term != terms.rend() && !failed(); ++term) {
    ++terms_;
    const Term& at = tree.at(*term);
    const std::int32_t right = value(tree, at.children[1]);
    if (failed()) return none;
    if (is_division(operation(at.operators[0])) && is_literal_zero(tree, at.children[1])) {
      return fail(at, "the divisor of " + std::string(at.text) +
                          " is the literal 0; any other number is allowed; divide by another");
    }
    out = binary(at, out, right);
  }
  return out;
}

std::int32_t Binder::binary(const Term& term, std::int32_t left, std::int32_t right) {
  const Op op = operation(term.operators[0]);
  const std::string sign(term.text);
  if (op == Op::logical_and || op == Op::logical_or) {
    for (const std::int32_t node : {left, right}) {
      if (builder_.type(node) == Type::boolean) continue;
      return fail(term, sign + " takes bool, found " + spelling(builder_.type(node)) +
                            "; compare it with something");
    }
    return builder_.binary(op, left, right);
  }
  // Floor division by a constant is cheap; for / a parameter does as well.
  if (op == Op::floor_divide || op == Op::modulo) right = builder_.divisor(right);
  std::int32_t nodes[] = {left, right};
  if (!numbers(term, sign, nodes)) return none;
  if (op == Op::divide) {
    for (std::int32_t& node : nodes) node = builder_.as_real(node);
  }
  return builder_.binary(op, nodes[0], nodes[1]);
}

// `a < b <= c` is `a < b & b <= c` with one `b`.
std::int32_t Binder::compare(const Tree& tree, const Term& term) {
  std::int32_t out = none;
  std::int32_t left = value(tree, term.children[0]);
  for (std::size_t i = 0; i < term.operators.size() && !failed(); ++i) {
    const std::int32_t right = value(tree, term.children[i + 1]);
    if (failed()) return none;
    const std::int32_t one = comparison(term, term.operators[i], left, right);
    if (failed()) return none;
    out = i == 0 ? one : builder_.binary(Op::logical_and, out, one);
    left = right;
  }
  return out;
}

std::int32_t Binder::comparison(const Term& term, Token::Kind sign, std::int32_t a,
                                std::int32_t b) {
  const bool equality = sign == Token::Kind::equal || sign == Token::Kind::not_equal;
  if (equality && builder_.type(a) == Type::boolean && builder_.type(b) == Type::boolean) {
    // Readers compare numbers only: a == b is a ? b : !b.
    const std::int32_t not_b = builder_.unary(Op::logical_not, b);
    return sign == Token::Kind::equal ? builder_.select(a, b, not_b) : builder_.select(a, not_b, b);
  }
  std::int32_t nodes[] = {a, b};
  if (!numbers(term, equality ? "a comparison of a bool with a number" : "a comparison", nodes)) {
    return none;
  }
  switch (sign) {
    case Token::Kind::less:
      return builder_.binary(Op::less, nodes[0], nodes[1]);
    case Token::Kind::less_equal:
      return builder_.binary(Op::less_equal, nodes[0], nodes[1]);
    case Token::Kind::greater:
      return builder_.binary(Op::less, nodes[1], nodes[0]);
    case Token::Kind::greater_equal:
      return builder_.binary(Op::less_equal, nodes[1], nodes[0]);
    case Token::Kind::equal:
      return builder_.binary(Op::equal, nodes[0], nodes[1]);
    default:
      return builder_.binary(Op::not_equal, nodes[0], nodes[1]);
  }
}

std::int32_t Binder::choice(const Tree& tree, const Term& term) {
  const std::int32_t condition = value(tree, term.children[0]);
  const std::int32_t yes = value(tree, term.children[1]);
  const std::int32_t no = value(tree, term.children[2]);
  return failed() ? none : select(term, condition, yes, no);
}

std::int32_t Binder::select(const Term& term, std::int32_t condition, std::int32_t yes,
                            std::int32_t no) {
  const Type type = builder_.type(condition);
  if (type != Type::boolean) {
    return fail(term, "the condition has type " + spelling(type) +
                          "; a condition is bool; compare it with something");
  }
  std::int32_t branches[] = {yes, no};
  const bool yes_is_bool = builder_.type(yes) == Type::boolean;
  const bool no_is_bool = builder_.type(no) == Type::boolean;
  if (yes_is_bool != no_is_bool) {
    return fail(term,
                "the branches have types " + spelling(builder_.type(yes)) + " and " +
                    spelling(builder_.type(no)) +
                    "; both are bool or both are numbers; where(c, 1, 0) makes a number of a bool");
  }
  if (!yes_is_bool && !numbers(term, "?:", branches)) return none;
  return builder_.select(condition, branches[0], branches[1]);
}

std::int32_t Binder::function(const Tree& tree, const Term& term) {
  const Function& known = *find_function(term.text);
  const std::string name(known.name);
  if (term.children.size() != static_cast<std::size_t>(known.arguments)) {
    return fail(term, name + " takes " + std::to_string(known.arguments) + " arguments, found " +
                          std::to_string(term.children.size()) + "; write " + name +
                          (known.arguments == 1   ? "(a)"
                           : known.arguments == 2 ? "(a, b)"
                                                  : "(c, a, b)"));
  }
  if (kind_ == Kind::mask && !known.in_masks) {
    return fail(term, "a mask may not use " + name +
                          ", whose last bit differs between machines; masks use abs, min, max, "
                          "floor and where; pass the values as an array");
  }
  if (known.op == Op::select) return choice(tree, term);
  std::int32_t nodes[] = {value(tree, term.children[0]), none};
  if (known.arguments == 2) nodes[1] = value(tree, term.children[1]);
  const std::span<std::int32_t> used(nodes, static_cast<std::size_t>(known.arguments));
  if (failed() || !numbers(term, name, used)) return none;
  if (known.op == Op::minimum || known.op == Op::maximum) {
    return builder_.binary(known.op, nodes[0], nodes[1]);
  }
  if (known.op != Op::absolute) nodes[0] = builder_.as_real(nodes[0]);
  return builder_.unary(known.op, nodes[0]);
}

}  // namespace onepass::lang
