#include "reference/expression.h"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

namespace onepass::reference {
namespace {

[[noreturn]] void refuse(const char* what) { throw std::invalid_argument(what); }

Value boolean(bool x) { return {Type::boolean, x ? 1 : 0, 0.0}; }
Value integer(std::int64_t x) { return {Type::integer, x, 0.0}; }

// Two's complement: the unsigned operations wrap.
std::uint64_t bits(std::int64_t x) { return static_cast<std::uint64_t>(x); }
std::int64_t wrapped(std::uint64_t x) { return static_cast<std::int64_t>(x); }

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return wrapped(0 - bits(a));
  std::int64_t quotient = a / b;
  if (a % b != 0 && (a < 0) != (b < 0)) --quotient;
  return quotient;
}

std::int64_t integer_arithmetic(Op op, std::int64_t a, std::int64_t b) {
  switch (op) {
    case Op::add:
      return wrapped(bits(a) + bits(b));
    case Op::subtract:
      return wrapped(bits(a) - bits(b));
    case Op::multiply:
      return wrapped(bits(a) * bits(b));
    case Op::floor_divide:
      return floor_divide(a, b);
    case Op::modulo:
      return b == 0 ? 0 : wrapped(bits(a) - bits(b) * bits(floor_divide(a, b)));
    case Op::minimum:
      return a < b ? a : b;
    case Op::maximum:
      return a > b ? a : b;
    default:
      refuse("not integer arithmetic");
  }
}

template <class T>
bool holds(Op op, T a, T b) {
  switch (op) {
    case Op::less:
      return a < b;
    case Op::less_equal:
      return a <= b;
    case Op::greater:
      return a > b;
    case Op::greater_equal:
      return a >= b;
    case Op::equal:
      return a == b;
    case Op::not_equal:
      return a != b;
    default:
      refuse("not a comparison");
  }
}

void need(bool condition, const char* what) {
  if (!condition) refuse(what);
}

}  // namespace

Expression::Expression(std::string_view text, Kind kind, std::vector<Argument> arguments,
                       std::string_view definitions)
    : kind_(kind), arguments_(std::move(arguments)) {
  tree_ = parse(text, kind, arguments_, definitions);
  // Every operand is always evaluated, so one evaluation anywhere checks every type.
  const Type type = evaluate(tree_, Pair{}).type;
  if (kind == Kind::mask) need(type == Type::boolean, "a mask must be a bool");
  if (kind == Kind::score) need(type != Type::boolean, "a score must be a float");
}

Value Expression::real(double x) const {
  return {Type::real, 0, kind_ == Kind::mask ? static_cast<double>(static_cast<float>(x)) : x};
}

Value Expression::as_real(const Value& value) const {
  need(value.type != Type::boolean, "a bool is not a number");
  if (value.type == Type::real) return value;
  // Straight to float32: by way of float64 an int64 would be rounded twice.
  if (kind_ == Kind::mask) return {Type::real, 0, static_cast<float>(value.integer)};
  return {Type::real, 0, static_cast<double>(value.integer)};
}

std::optional<std::size_t> Expression::element(const Tree& tree, const Pair& pair) const {
  const Array& array = *tree.array;
  need(tree.children.size() == array.shape.size(), "an array needs one index for each dim");
  std::int64_t position = 0;
  bool inside = true;
  for (std::size_t dim = 0; dim < array.shape.size(); ++dim) {
    const Value index = evaluate(tree.children[dim], pair);
    need(index.type == Type::integer, "an index must be an int");
    const std::int64_t size = array.shape[dim];
    const std::int64_t i = size == 1 ? 0 : index.integer;
    if (i < 0 || i >= size) inside = false;
    position = inside ? position * size + i : 0;
  }
  if (!inside) return std::nullopt;
  return static_cast<std::size_t>(position);
}

Value Expression::load(const Tree& tree, const Pair& pair) const {
  const Array& array = *tree.array;
  const auto at = element(tree, pair);
  if (array.type == Type::real) return real(at ? array.reals[*at] : 0.0);
  return {array.type, at ? array.integers[*at] : 0, 0.0};
}

// float32 in a mask: one float64 operation followed by rounding equals the float32 operation.
Value Expression::arithmetic(Op op, const Value& a, const Value& b) const {
  need(a.type != Type::boolean && b.type != Type::boolean, "arithmetic needs numbers");
  if (a.type == Type::integer && b.type == Type::integer && op != Op::divide) {
    return integer(integer_arithmetic(op, a.integer, b.integer));
  }
  const double x = as_real(a).real, y = as_real(b).real;
  switch (op) {
    case Op::add:
      return real(x + y);
    case Op::subtract:
      return real(x - y);
    case Op::multiply:
      return real(x * y);
    case Op::divide:
      return real(x / y);
    case Op::floor_divide:
      return real(std::floor(real(x / y).real));
    case Op::modulo:
      return real(x - real(y * std::floor(real(x / y).real)).real);
    case Op::minimum:
      return real(std::isnan(x) || std::isnan(y) ? x + y : (x < y ? x : y));
    case Op::maximum:
      return real(std::isnan(x) || std::isnan(y) ? x + y : (x > y ? x : y));
    default:
      refuse("not arithmetic");
  }
}

Value Expression::compare(Op op, Value a, Value b) const {
  if (a.type == Type::boolean || b.type == Type::boolean) {
    need(a.type == b.type && (op == Op::equal || op == Op::not_equal), "cannot compare these");
    return boolean(holds(op, a.integer, b.integer));
  }
  if (a.type == Type::integer && b.type == Type::integer) {
    return boolean(holds(op, a.integer, b.integer));
  }
  return boolean(holds(op, as_real(a).real, as_real(b).real));
}

Value Expression::function(Op op, const Value& a) const {
  if (op == Op::absolute && a.type == Type::integer) {
    return integer(a.integer < 0 ? wrapped(0 - bits(a.integer)) : a.integer);
  }
  const double x = as_real(a).real;
  switch (op) {
    case Op::absolute:
      return real(std::fabs(x));
    case Op::floor:
      return real(std::floor(x));
    case Op::square_root:
      return real(std::sqrt(x));
    case Op::exponential:
      return real(std::exp(x));
    case Op::logarithm:
      return real(std::log(x));
    case Op::hyperbolic_tangent:
      return real(std::tanh(x));
    default:
      refuse("not a function of one number");
  }
}

Value Expression::evaluate(const Tree& tree, const Pair& pair) const {
  const auto child = [&](std::size_t i) { return evaluate(tree.children[i], pair); };
  switch (tree.op) {
    case Op::number:
      return tree.value.type == Type::real ? real(tree.value.real) : tree.value;
    case Op::name:
      return tree.field ? integer(pair.*tree.field) : real(pair.s);
    case Op::array:
      return load(tree, pair);
    case Op::negate: {
      const Value a = child(0);
      need(a.type != Type::boolean, "- needs a number");
      return a.type == Type::integer ? integer(wrapped(0 - bits(a.integer))) : real(-a.real);
    }
    case Op::logical_not: {
      const Value a = child(0);
      need(a.type == Type::boolean, "! needs a bool");
      return boolean(!a.integer);
    }
    case Op::logical_and:
    case Op::logical_or: {
      const Value a = child(0), b = child(1);
      need(a.type == Type::boolean && b.type == Type::boolean, "& and | need bools");
      return boolean(tree.op == Op::logical_and ? a.integer && b.integer : a.integer || b.integer);
    }
    case Op::less:
    case Op::less_equal:
    case Op::greater:
    case Op::greater_equal:
    case Op::equal:
    case Op::not_equal:
      return compare(tree.op, child(0), child(1));
    case Op::select: {
      const Value condition = child(0);
      Value a = child(1), b = child(2);
      need(condition.type == Type::boolean, "? and where need a bool");
      if (a.type != b.type) a = as_real(a), b = as_real(b);
      return condition.integer ? a : b;
    }
    case Op::absolute:
    case Op::floor:
    case Op::square_root:
    case Op::exponential:
    case Op::logarithm:
    case Op::hyperbolic_tangent:
      return function(tree.op, child(0));
    default:
      return arithmetic(tree.op, child(0), child(1));
  }
}

}  // namespace onepass::reference
