#include "lang/range.h"

#include <algorithm>
#include <cmath>

#include "lang/integer.h"

namespace onepass::lang::intervals {
namespace {

constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t highest = std::numeric_limits<std::int64_t>::max();

using Wide = __int128;

/// The exact range [lo, hi], or every int64 where a value of it would wrap.
Range unless_wrapped(Wide lo, Wide hi) {
  if (lo < lowest || hi > highest) return integers(lowest, highest);
  return integers(static_cast<std::int64_t>(lo), static_cast<std::int64_t>(hi));
}

Range add(IntegerRange a, IntegerRange b) {
  return unless_wrapped(Wide{a.lo} + b.lo, Wide{a.hi} + b.hi);
}

Range subtract(IntegerRange a, IntegerRange b) {
  return unless_wrapped(Wide{a.lo} - b.hi, Wide{a.hi} - b.lo);
}

Range multiply(IntegerRange a, IntegerRange b) {
  const auto [lo, hi] =
      std::minmax({Wide{a.lo} * b.lo, Wide{a.lo} * b.hi, Wide{a.hi} * b.lo, Wide{a.hi} * b.hi});
  return unless_wrapped(lo, hi);
}

Wide wide_floor_quotient(Wide a, Wide b) {
  const Wide quotient = a / b;
  return quotient - ((a % b != 0) && ((a < 0) != (b < 0)) ? 1 : 0);
}

/// The part of b on one side of 0, where a // b is monotone in both.
void divide_part(IntegerRange a, IntegerRange b, Wide& lo, Wide& hi) {
  if (b.lo > b.hi) return;
  for (const std::int64_t x : {a.lo, a.hi}) {
    for (const std::int64_t y : {b.lo, b.hi}) {
      const Wide quotient = wide_floor_quotient(x, y);
      lo = std::min(lo, quotient);
      hi = std::max(hi, quotient);
    }
  }
}

Range floor_divide(IntegerRange a, IntegerRange b) {
  if (b.lo == b.hi && b.lo > 0) {
    return integers(floor_quotient(a.lo, b.lo), floor_quotient(a.hi, b.lo));
  }
  const bool zero = b.lo <= 0 && b.hi >= 0;
  Wide lo = zero ? 0 : Wide{highest} + 1;
  Wide hi = zero ? 0 : Wide{lowest} - 1;
  divide_part(a, {b.lo, std::min<std::int64_t>(b.hi, -1)}, lo, hi);
  divide_part(a, {std::max<std::int64_t>(b.lo, 1), b.hi}, lo, hi);
  return unless_wrapped(lo, hi);
}

Range modulo(IntegerRange a, IntegerRange b) {
  if (b.lo == b.hi) {
    if (b.lo == 0) return integers(0, 0);
    // No multiple of b is passed: the remainder moves with a.
    if (floor_quotient(a.lo, b.lo) == floor_quotient(a.hi, b.lo)) {
      return integers(floor_remainder(a.lo, b.lo), floor_remainder(a.hi, b.lo));
    }
  }
  // The remainder lies between 0 and the divisor, and has its sign.
  std::int64_t lo = b.lo < 0 ? b.lo + 1 : 0;
  std::int64_t hi = b.hi > 0 ? b.hi - 1 : 0;
  if (b.lo >= 0 && a.lo >= 0) hi = std::min(hi, a.hi);
  if (b.hi <= 0 && a.hi <= 0) lo = std::max(lo, a.lo);
  return integers(lo, hi);
}

Range absolute(IntegerRange a) {
  if (a.lo == lowest) return integers(lowest, highest);
  if (a.lo >= 0) return integers(a.lo, a.hi);
  if (a.hi <= 0) return integers(-a.hi, -a.lo);
  return integers(0, std::max(-a.lo, a.hi));
}

bool has_zero(RealRange a) { return a.lo <= 0.0f && a.hi >= 0.0f; }
bool has_infinity(RealRange a) { return a.lo == -infinity || a.hi == infinity; }

/// An end that is NaN (inf - inf at that corner) says nothing about the corner's neighbours.
Range ends(float lo, float hi, bool nan) {
  return reals(std::isnan(lo) ? -infinity : lo, std::isnan(hi) ? infinity : hi, nan);
}

Range add(RealRange a, RealRange b) {
  const bool cancels = (a.lo == -infinity && b.hi == infinity) ||  //
                       (a.hi == infinity && b.lo == -infinity);
  return ends(a.lo + b.lo, a.hi + b.hi, a.nan || b.nan || cancels);
}

Range corners(float a, float b, float c, float d, bool nan) {
  if (std::isnan(a) || std::isnan(b) || std::isnan(c) || std::isnan(d)) {
    return reals(-infinity, infinity, nan);
  }
  return reals(std::min({a, b, c, d}), std::max({a, b, c, d}), nan);
}

Range multiply(RealRange a, RealRange b) {
  const bool indefinite = (has_zero(a) && has_infinity(b)) || (has_infinity(a) && has_zero(b));
  return corners(a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi, a.nan || b.nan || indefinite);
}

Range divide(RealRange a, RealRange b) {
  const bool nan = a.nan || b.nan || (has_zero(a) && has_zero(b)) ||  //
                   (has_infinity(a) && has_infinity(b));
  if (has_zero(b)) return reals(-infinity, infinity, nan);
  return corners(a.lo / b.lo, a.lo / b.hi, a.hi / b.lo, a.hi / b.hi, nan);
}

Range negate(RealRange a) { return reals(-a.hi, -a.lo, a.nan); }
Range floor(RealRange a) { return reals(std::floor(a.lo), std::floor(a.hi), a.nan); }

Range floor_divide(RealRange a, RealRange b) { return floor(divide(a, b).real); }

Range modulo(RealRange a, RealRange b) {
  const Range multiple = multiply(b, floor_divide(a, b).real);
  return add(a, negate(multiple.real).real);
}

Range absolute(RealRange a) {
  if (a.lo >= 0.0f) return {.real = a};
  if (a.hi <= 0.0f) return negate(a);
  return reals(0.0f, std::max(-a.lo, a.hi), a.nan);
}

Range truth(bool may_be_false, bool may_be_true) {
  return integers(may_be_false ? 0 : 1, may_be_true ? 1 : 0);
}

Range inverted(const Range& a) { return integers(1 - a.integer.hi, 1 - a.integer.lo); }

Range less(IntegerRange a, IntegerRange b) { return truth(a.hi >= b.lo, a.lo < b.hi); }
Range less_equal(IntegerRange a, IntegerRange b) { return truth(a.hi > b.lo, a.lo <= b.hi); }
Range equal(IntegerRange a, IntegerRange b) {
  return truth(a.lo != b.hi || a.hi != b.lo, a.lo <= b.hi && b.lo <= a.hi);
}

// Comparisons with NaN are false.
Range less(RealRange a, RealRange b) { return truth(a.nan || b.nan || a.hi >= b.lo, a.lo < b.hi); }
Range less_equal(RealRange a, RealRange b) {
  return truth(a.nan || b.nan || a.hi > b.lo, a.lo <= b.hi);
}
Range equal(RealRange a, RealRange b) {
  return truth(a.nan || b.nan || a.lo != b.hi || a.hi != b.lo, a.lo <= b.hi && b.lo <= a.hi);
}

Range apply_integer(Op op, const Range* x) {
  const IntegerRange a = x[0].integer;
  switch (op) {
    case Op::negate:
      return subtract({0, 0}, a);
    case Op::add:
      return add(a, x[1].integer);
    case Op::subtract:
      return subtract(a, x[1].integer);
    case Op::multiply:
      return multiply(a, x[1].integer);
    case Op::floor_divide:
      return floor_divide(a, x[1].integer);
    case Op::modulo:
      return modulo(a, x[1].integer);
    case Op::absolute:
      return absolute(a);
    case Op::minimum:
      return integers(std::min(a.lo, x[1].integer.lo), std::min(a.hi, x[1].integer.hi));
    case Op::maximum:
      return integers(std::max(a.lo, x[1].integer.lo), std::max(a.hi, x[1].integer.hi));
    default:
      return everything(Type::integer);
  }
}

Range apply_real(Op op, Type operand_type, const Range* x) {
  if (op == Op::to_real && operand_type != Type::real) {
    return reals(static_cast<float>(x[0].integer.lo), static_cast<float>(x[0].integer.hi), false);
  }
  const RealRange a = x[0].real;
  switch (op) {
    case Op::to_real:
      return x[0];
    case Op::negate:
      return negate(a);
    case Op::add:
      return add(a, x[1].real);
    case Op::subtract:
      return add(a, negate(x[1].real).real);
    case Op::multiply:
      return multiply(a, x[1].real);
    case Op::divide:
      return divide(a, x[1].real);
    case Op::floor_divide:
      return floor_divide(a, x[1].real);
    case Op::modulo:
      return modulo(a, x[1].real);
    case Op::absolute:
      return absolute(a);
    case Op::floor:
      return floor(a);
    case Op::minimum:
      return reals(std::min(a.lo, x[1].real.lo), std::min(a.hi, x[1].real.hi),
                   a.nan || x[1].real.nan);
    case Op::maximum:
      return reals(std::max(a.lo, x[1].real.lo), std::max(a.hi, x[1].real.hi),
                   a.nan || x[1].real.nan);
    default:
      return everything(Type::real);
  }
}

Range apply_boolean(Op op, Type operand_type, const Range* x) {
  const IntegerRange a = x[0].integer;
  const bool real = operand_type == Type::real;
  switch (op) {
    case Op::logical_not:
      return inverted(x[0]);
    case Op::logical_and:
      return integers(a.lo & x[1].integer.lo, a.hi & x[1].integer.hi);
    case Op::logical_or:
      return integers(a.lo | x[1].integer.lo, a.hi | x[1].integer.hi);
    case Op::less:
      return real ? less(x[0].real, x[1].real) : less(a, x[1].integer);
    case Op::less_equal:
      return real ? less_equal(x[0].real, x[1].real) : less_equal(a, x[1].integer);
    case Op::equal:
      return real ? equal(x[0].real, x[1].real) : equal(a, x[1].integer);
    case Op::not_equal:
      return inverted(real ? equal(x[0].real, x[1].real) : equal(a, x[1].integer));
    default:
      return everything(Type::boolean);
  }
}

}  // namespace

Range everything(Type type) {
  if (type == Type::real) return reals(-infinity, infinity, true);
  if (type == Type::boolean) return integers(0, 1);
  return integers(lowest, highest);
}

Range nothing(Type type) {
  if (type == Type::real) return reals(infinity, -infinity, false);
  return integers(highest, lowest);
}

Range only(Type type, Value value) {
  if (type != Type::real) return integers(value.integer, value.integer);
  if (std::isnan(value.real)) return reals(infinity, -infinity, true);
  return reals(value.real, value.real, false);
}

Range hull(Type type, const Range& a, const Range& b) {
  if (type == Type::real) {
    return reals(std::min(a.real.lo, b.real.lo), std::max(a.real.hi, b.real.hi),
                 a.real.nan || b.real.nan);
  }
  return integers(std::min(a.integer.lo, b.integer.lo), std::max(a.integer.hi, b.integer.hi));
}

Range apply(Op op, Type type, Type operand_type, const Range* operand) {
  if (op == Op::select) {
    if (operand[0].integer.lo == 1) return operand[1];
    if (operand[0].integer.hi == 0) return operand[2];
    return hull(type, operand[1], operand[2]);
  }
  if (type == Type::integer) return apply_integer(op, operand);
  if (type == Type::real) return apply_real(op, operand_type, operand);
  return apply_boolean(op, operand_type, operand);
}

}  // namespace onepass::lang::intervals
