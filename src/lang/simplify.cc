// What Builder knows about an operation without computing it. Every rule is exact for every value:
// x + 0.0 stays (it turns -0 into 0), x * 0.0 stays (NaN), !(a < b) of floats stays (NaN).
#include <cmath>

#include "lang/builder.h"
#include "lang/fold.h"

namespace onepass::lang {
namespace {

constexpr std::int32_t none = -1;

}  // namespace

bool Builder::is_value(std::int32_t node) const {
  return at(node).op == Op::constant || at(node).op == Op::parameter;
}
bool Builder::is_zero(std::int32_t node) const {
  const Node& n = at(node);
  if (n.op != Op::constant || n.type == Type::boolean) return false;
  return n.type == Type::real ? n.real == 0.0 : n.integer == 0;
}
bool Builder::is_one(std::int32_t node) const {
  const Node& n = at(node);
  if (n.op != Op::constant || n.type == Type::boolean) return false;
  return n.type == Type::real ? n.real == 1.0 : n.integer == 1;
}
bool Builder::is_true(std::int32_t node) const {
  const Node& n = at(node);
  return n.op == Op::constant && n.type == Type::boolean && n.integer != 0;
}
bool Builder::is_false(std::int32_t node) const {
  const Node& n = at(node);
  return n.op == Op::constant && n.type == Type::boolean && n.integer == 0;
}

// A parameter against the constant 0: decided by its sign, so that `window(-1, 0)` drops a side.
std::int32_t Builder::decide_sign(const Node& node) {
  const std::int32_t a = node.operand[0];
  const std::int32_t b = node.operand[1];
  const bool left = at(a).op == Op::parameter && is_zero(b);
  const bool right = at(b).op == Op::parameter && is_zero(a);
  if (!left && !right) return none;
  const auto held = program_.parameters[static_cast<std::size_t>(at(left ? a : b).slot)];
  const Value known{held.type, held.integer, held.real};
  const Value zero{held.type, 0, 0.0};
  const std::array<Value, 2> operands{left ? known : zero, left ? zero : known};
  return constant(apply(kind(), node.op, operands).integer != 0);
}

std::int32_t Builder::simplify(const Node& node) {
  const std::int32_t a = node.operand[0];
  const std::int32_t b = node.operand[1];
  const bool integer = type(a) == Type::integer;
  switch (node.op) {
    case Op::negate:
      return at(a).op == Op::negate ? at(a).operand[0] : none;
    case Op::add:
      if (integer && is_zero(b)) return a;
      if (integer && is_zero(a)) return b;
      return none;
    case Op::subtract:
      if (is_zero(b) && (integer || !std::signbit(at(b).real))) return a;
      if (integer && a == b) return constant(std::int64_t{0});
      if (integer && is_zero(a)) return unary(Op::negate, b);
      return none;
    case Op::multiply:
      if (is_one(b)) return a;
      if (is_one(a)) return b;
      if (integer && is_zero(a)) return a;
      if (integer && is_zero(b)) return b;
      return none;
    case Op::divide:
      return is_one(b) ? a : none;
    case Op::floor_divide:
      if (integer && is_one(b)) return a;
      return integer && is_zero(b) ? b : none;  // a divisor of 0 gives 0
    case Op::modulo:
      return integer && (is_one(b) || is_zero(b)) ? constant(std::int64_t{0}) : none;
    case Op::less:
    case Op::not_equal:
      if (a == b && (integer || node.op == Op::less)) return constant(false);
      return decide_sign(node);
    case Op::less_equal:
    case Op::equal:
      if (a == b && integer) return constant(true);
      return decide_sign(node);
    case Op::absolute:
      return at(a).op == Op::absolute ? a : none;
    case Op::minimum:
    case Op::maximum:
      return a == b ? a : none;
    case Op::floor:
      return at(a).op == Op::floor || at(a).op == Op::to_real ? a : none;
    case Op::select:
      return simplify_select(node);
    default:
      return simplify_logic(node);
  }
}

std::int32_t Builder::simplify_logic(const Node& node) {
  const std::int32_t a = node.operand[0];
  const std::int32_t b = node.operand[1];
  switch (node.op) {
    case Op::logical_not: {
      const Node inner = at(a);
      if (inner.op == Op::logical_not) return inner.operand[0];
      const bool integer = inner.operands > 0 && type(inner.operand[0]) == Type::integer;
      const std::int32_t x = inner.operand[0];
      const std::int32_t y = inner.operand[1];
      if (inner.op == Op::equal) return binary(Op::not_equal, x, y);
      if (inner.op == Op::not_equal) return binary(Op::equal, x, y);
      // Not so for floats: no comparison with NaN holds, nor does the opposite one.
      if (integer && inner.op == Op::less) return binary(Op::less_equal, y, x);
      if (integer && inner.op == Op::less_equal) return binary(Op::less, y, x);
      return none;
    }
    case Op::logical_and:
      if (is_false(a) || is_true(b) || a == b) return a;
      return is_false(b) || is_true(a) ? b : none;
    case Op::logical_or:
      if (is_true(a) || is_false(b) || a == b) return a;
      return is_true(b) || is_false(a) ? b : none;
    default:
      return none;
  }
}

std::int32_t Builder::simplify_select(const Node& node) {
  const auto [condition, yes, no, unused] = node.operand;
  if (is_true(condition) || yes == no) return yes;
  if (is_false(condition)) return no;
  if (is_true(yes)) return binary(Op::logical_or, condition, no);
  if (is_false(no)) return binary(Op::logical_and, condition, yes);
  if (is_false(yes)) return binary(Op::logical_and, unary(Op::logical_not, condition), no);
  if (is_true(no)) return binary(Op::logical_or, unary(Op::logical_not, condition), yes);
  return none;
}

}  // namespace onepass::lang
