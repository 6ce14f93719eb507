// Derivatives of a score by forward mode: each node's value with its tangent, one pair at a time.
#include <cmath>

#include "reference/expression.h"

namespace onepass::reference {
namespace {

// The chain rule. Zero wins over inf and NaN: what does not move contributes nothing.
Tangent times(double factor, const Tangent& tangent) {
  Tangent out;
  for (const auto& [variable, change] : tangent) {
    if (factor != 0.0 && change != 0.0) out[variable] = factor * change;
  }
  return out;
}

Tangent plus(Tangent a, const Tangent& b) {
  for (const auto& [variable, change] : b) a[variable] += change;
  return a;
}

}  // namespace

// With x, y the operands' values and dx, dy their tangents. Ints, bools, comparisons, floor and //
// stand still; so do names other than s.
Tangent Expression::tangent(const Tree& tree, const Pair& pair) const {
  const Value value = evaluate(tree, pair);
  if (value.type != Type::real) return {};
  const auto x = [&](std::size_t i) { return as_real(evaluate(tree.children[i], pair)).real; };
  const auto dx = [&](std::size_t i) { return tangent(tree.children[i], pair); };
  switch (tree.op) {
    case Op::name:
      return {{Variable{}, 1.0}};  // s, the only float among the names
    case Op::array: {
      const auto at = element(tree, pair);
      return at ? Tangent{{Variable{tree.array, *at}, 1.0}} : Tangent{};
    }
    case Op::negate:
      return times(-1.0, dx(0));
    case Op::add:
      return plus(dx(0), dx(1));
    case Op::subtract:
      return plus(dx(0), times(-1.0, dx(1)));
    case Op::multiply:  // y dx + x dy
      return plus(times(x(1), dx(0)), times(x(0), dx(1)));
    case Op::divide:  // (dx - (x / y) dy) / y
      return times(1.0 / x(1), plus(dx(0), times(-value.real, dx(1))));
    case Op::modulo:  // x - y floor(x / y)
      return plus(dx(0), times(-std::floor(x(0) / x(1)), dx(1)));
    case Op::select:
      return dx(evaluate(tree.children[0], pair).integer ? 1 : 2);
    case Op::minimum:
    case Op::maximum: {
      const double a = x(0), b = x(1);
      if (std::isnan(a) || std::isnan(b)) return plus(dx(0), dx(1));  // the value is a + b
      const bool second = tree.op == Op::minimum ? b < a : b > a;     // a tie is the first's
      return dx(second ? 1 : 0);
    }
    case Op::absolute:  // 0 at 0
      return times(x(0) == 0.0 ? 0.0 : std::copysign(1.0, x(0)), dx(0));
    case Op::square_root:
      return times(0.5 / value.real, dx(0));
    case Op::exponential:
      return times(value.real, dx(0));
    case Op::logarithm:
      return times(1.0 / x(0), dx(0));
    case Op::hyperbolic_tangent:
      return times(1.0 - value.real * value.real, dx(0));
    default:
      return {};
  }
}

}  // namespace onepass::reference
