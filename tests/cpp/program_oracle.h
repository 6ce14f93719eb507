// A plain evaluator of compiled programs, one pair at a time, for tests. Shares nothing with src/
// but the Program struct; float arithmetic in Real, elementary functions from <cmath>.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "lang/program.h"

namespace onepass::lang {

struct OracleValue {
  std::int64_t integer = 0;  // also booleans
  double real = 0.0;
};

inline double oracle_half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double fraction = bits & 1023;
  double size = std::ldexp(1024 + fraction, exponent - 25);
  if (exponent == 0) size = std::ldexp(fraction, -24);
  if (exponent == 31) size = fraction == 0 ? HUGE_VAL : std::nan("");
  return (bits >> 15) != 0 ? -size : size;
}

inline OracleValue oracle_element(const TensorView& view, std::int64_t offset) {
  const auto read = [&](auto value) {
    std::memcpy(&value, static_cast<const char*>(view.data) + offset * size_bytes(view.dtype),
                sizeof value);
    return value;
  };
  switch (view.dtype) {
    case DType::float64:
      return {0, read(double{})};
    case DType::float32:
      return {0, read(float{})};
    case DType::float16:
      return {0, oracle_half(read(std::uint16_t{}))};
    case DType::bfloat16: {
      const std::uint32_t bits = static_cast<std::uint32_t>(read(std::uint16_t{})) << 16;
      float value;
      std::memcpy(&value, &bits, sizeof value);
      return {0, value};
    }
    case DType::int64:
      return {read(std::int64_t{}), 0};
    case DType::int32:
      return {read(std::int32_t{}), 0};
    case DType::uint8:
      return {read(std::uint8_t{}), 0};
    case DType::boolean:
      return {read(std::uint8_t{}) != 0, 0};
  }
  return {};
}

template <class Real>
class Oracle {
 public:
  Oracle(const Program& program, const Scope& scope) : program_(program), scope_(scope) {}

  /// Value of the root.
  OracleValue at(std::int64_t row, std::int64_t col, double logit = 0.0) {
    values_.clear();
    for (const Node& node : program_.nodes) {
      values_.push_back(node_value(node, row, col, static_cast<Real>(logit)));
      if (node.type == Type::integer) {
        low_ = std::min(low_, values_.back().integer);
        high_ = std::max(high_, values_.back().integer);
      }
    }
    return values_[static_cast<std::size_t>(program_.root)];
  }
  /// Every integer subterm met so far fits 32 bits.
  bool met_only_int32() const {
    return low_ >= std::numeric_limits<std::int32_t>::min() &&
           high_ <= std::numeric_limits<std::int32_t>::max();
  }

 private:
  static std::int64_t wrap(std::uint64_t value) { return static_cast<std::int64_t>(value); }

  static std::int64_t sum(std::int64_t a, std::int64_t b) {
    return wrap(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  }

  static std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
    if (b == 0) return 0;
    const __int128 wide_a = a, wide_b = b;
    __int128 quotient = wide_a / wide_b;
    if (quotient * wide_b != wide_a && (a < 0) != (b < 0)) --quotient;
    return static_cast<std::int64_t>(quotient);
  }

  std::int64_t name_value(Name name, std::int64_t row, std::int64_t col) const {
    switch (name) {
      case Name::q:
        return sum(row, scope_.q_start);
      case Name::k:
        return sum(col, scope_.k_start);
      case Name::row:
        return row;
      case Name::col:
        return col;
      case Name::b:
        return scope_.b;
      case Name::h:
        return scope_.h;
      case Name::h_kv:
        return scope_.h_kv;
      case Name::s_q:
        return scope_.s_q;
      case Name::s_kv:
        return scope_.s_kv;
      case Name::token_q:
        return sum(row, scope_.token_q_start);
      case Name::token_k:
        return sum(col, scope_.token_k_start);
      case Name::s:
        break;
    }
    return 0;
  }

  OracleValue load(const Node& node) const {
    const TensorView& view = program_.arrays[static_cast<std::size_t>(node.slot)].view;
    std::int64_t offset = 0;
    for (std::size_t dim = 0; dim < static_cast<std::size_t>(view.rank); ++dim) {
      const std::int64_t index = values_[static_cast<std::size_t>(node.operand[dim])].integer;
      if (view.shape[dim] == 1) continue;
      if (index < 0 || index >= view.shape[dim]) return {};
      offset += index * view.strides[dim];
    }
    for (int dim = 0; dim < view.rank; ++dim) {
      if (view.shape[static_cast<std::size_t>(dim)] == 0) return {};
    }
    return oracle_element(view, offset);
  }

  OracleValue node_value(const Node& node, std::int64_t row, std::int64_t col, Real logit) const {
    const auto operand = [&](std::size_t i) {
      return values_[static_cast<std::size_t>(node.operand[i])];
    };
    const std::int64_t i0 = node.operands > 0 ? operand(0).integer : 0;
    const std::int64_t i1 = node.operands > 1 ? operand(1).integer : 0;
    const auto u0 = static_cast<std::uint64_t>(i0), u1 = static_cast<std::uint64_t>(i1);
    const Real r0 = node.operands > 0 ? static_cast<Real>(operand(0).real) : Real(0);
    const Real r1 = node.operands > 1 ? static_cast<Real>(operand(1).real) : Real(0);
    const bool real = node.type == Type::real;
    const bool real_sides =
        node.operands > 0 &&
        program_.nodes[static_cast<std::size_t>(node.operand[0])].type == Type::real;
    const auto number = [&](std::int64_t integer, Real value) {
      return real ? OracleValue{0, value} : OracleValue{integer, 0};
    };
    switch (node.op) {
      case Op::constant:
        return number(node.integer, static_cast<Real>(node.real));
      case Op::parameter: {
        const Parameter& parameter = program_.parameters[static_cast<std::size_t>(node.slot)];
        return number(parameter.integer, static_cast<Real>(parameter.real));
      }
      case Op::name:
        return node.name == Name::s ? OracleValue{0, logit}
                                    : OracleValue{name_value(node.name, row, col), 0};
      case Op::load: {
        const OracleValue element = load(node);
        return {element.integer, static_cast<Real>(element.real)};
      }
      case Op::to_real:
        return {0, static_cast<Real>(i0)};
      case Op::negate:
        return number(wrap(0 - u0), -r0);
      case Op::add:
        return number(wrap(u0 + u1), r0 + r1);
      case Op::subtract:
        return number(wrap(u0 - u1), r0 - r1);
      case Op::multiply:
        return number(wrap(u0 * u1), r0 * r1);
      case Op::divide:
        return {0, r0 / r1};
      case Op::floor_divide:
        return number(floor_quotient(i0, i1), std::floor(r0 / r1));
      case Op::modulo: {
        const Real whole = r1 * std::floor(r0 / r1);
        const auto quotient = static_cast<std::uint64_t>(floor_quotient(i0, i1));
        return number(i1 == 0 ? 0 : wrap(u0 - u1 * quotient), r0 - whole);
      }
      case Op::logical_not:
        return {i0 == 0, 0};
      case Op::logical_and:
        return {i0 != 0 && i1 != 0, 0};
      case Op::logical_or:
        return {i0 != 0 || i1 != 0, 0};
      case Op::less:
        return {real_sides ? r0 < r1 : i0 < i1, 0};
      case Op::less_equal:
        return {real_sides ? r0 <= r1 : i0 <= i1, 0};
      case Op::equal:
        return {real_sides ? r0 == r1 : i0 == i1, 0};
      case Op::not_equal:
        return {real_sides ? r0 != r1 : i0 != i1, 0};
      case Op::select:
        return i0 != 0 ? operand(1) : operand(2);
      case Op::absolute:
        return number(i0 < 0 ? wrap(0 - u0) : i0, std::fabs(r0));
      case Op::minimum:
        if (std::isnan(r0)) return {0, r0};
        return number(i0 < i1 ? i0 : i1, r0 < r1 ? r0 : r1);
      case Op::maximum:
        if (std::isnan(r0)) return {0, r0};
        return number(i0 > i1 ? i0 : i1, r0 > r1 ? r0 : r1);
      case Op::floor:
        return {0, std::floor(r0)};
      case Op::square_root:
        return {0, std::sqrt(r0)};
      case Op::exponential:
        return {0, std::exp(r0)};
      case Op::logarithm:
        return {0, std::log(r0)};
      case Op::hyperbolic_tangent:
        return {0, std::tanh(r0)};
    }
    return {};
  }

  const Program& program_;
  Scope scope_;
  std::vector<OracleValue> values_;
  std::int64_t low_ = 0, high_ = 0;
};

}  // namespace onepass::lang
