#include "lang/fold.h"

#include <cmath>
#include <limits>

namespace onepass::lang {
namespace {

std::uint64_t bits(std::int64_t a) { return static_cast<std::uint64_t>(a); }
std::int64_t wrapped(std::uint64_t a) { return static_cast<std::int64_t>(a); }

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return wrapped(0 - bits(a));
  const std::int64_t quotient = a / b;
  return quotient - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

std::int64_t integer_result(Op op, std::int64_t a, std::int64_t b) {
  switch (op) {
    case Op::negate:
      return wrapped(0 - bits(a));
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
    case Op::absolute:
      return a < 0 ? wrapped(0 - bits(a)) : a;
    case Op::minimum:
      return b < a ? b : a;
    case Op::maximum:
      return b > a ? b : a;
    default:
      return 0;
  }
}

double real_result(Kind kind, Op op, double a, double b) {
  switch (op) {
    case Op::negate:
      return -a;
    case Op::add:
      return rounded(kind, a + b);
    case Op::subtract:
      return rounded(kind, a - b);
    case Op::multiply:
      return rounded(kind, a * b);
    case Op::divide:
      return rounded(kind, a / b);
    case Op::floor_divide:
      return std::floor(rounded(kind, a / b));
    case Op::modulo:
      return rounded(kind, a - rounded(kind, b * std::floor(rounded(kind, a / b))));
    case Op::absolute:
      return std::fabs(a);
    case Op::minimum:
      return a < b || std::isnan(a) ? a : b;  // NaN if either is; of 0 and -0 the second
    case Op::maximum:
      return a > b || std::isnan(a) ? a : b;
    case Op::floor:
      return std::floor(a);
    case Op::square_root:
      return std::sqrt(a);
    case Op::exponential:
      return std::exp(a);
    case Op::logarithm:
      return std::log(a);
    case Op::hyperbolic_tangent:
      return std::tanh(a);
    default:
      return std::numeric_limits<double>::quiet_NaN();
  }
}

template <class T>
bool comparison_result(Op op, T a, T b) {
  switch (op) {
    case Op::less:
      return a < b;
    case Op::less_equal:
      return a <= b;
    case Op::equal:
      return a == b;
    default:
      return a != b;
  }
}

bool is_comparison(Op op) {
  return op == Op::less || op == Op::less_equal || op == Op::equal || op == Op::not_equal;
}

Value boolean(bool value) { return {Type::boolean, value ? 1 : 0, 0.0}; }

}  // namespace

// The double result of one float32 operation on float32 operands rounds to the float32 result:
// 53 bits are enough for + - * / (Figueroa, 1995).
double rounded(Kind kind, double value) {
  return kind == Kind::mask ? static_cast<double>(static_cast<float>(value)) : value;
}

Value apply(Kind kind, Op op, std::span<const Value> operands) {
  const Value& a = operands[0];
  const Value& b = operands.size() > 1 ? operands[1] : a;
  const bool real = a.type == Type::real;
  if (is_comparison(op)) {
    return boolean(real ? comparison_result(op, a.real, b.real)
                        : comparison_result(op, a.integer, b.integer));
  }
  switch (op) {
    case Op::select:
      return a.integer != 0 ? operands[1] : operands[2];
    case Op::logical_not:
      return boolean(a.integer == 0);
    case Op::logical_and:
      return boolean(a.integer != 0 && b.integer != 0);
    case Op::logical_or:
      return boolean(a.integer != 0 || b.integer != 0);
    case Op::to_real: {
      const double value =
          kind == Kind::mask ? static_cast<float>(a.integer) : static_cast<double>(a.integer);
      return {Type::real, 0, value};
    }
    default:
      break;
  }
  if (real) return {Type::real, 0, real_result(kind, op, a.real, b.real)};
  return {Type::integer, integer_result(op, a.integer, b.integer), 0.0};
}

}  // namespace onepass::lang
