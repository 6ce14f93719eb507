#include "lang/values.h"

#include <algorithm>
#include <cmath>

#include "lang/elements.h"
#include "lang/integer.h"

namespace onepass::lang::intervals {
namespace {

class Applied {
 public:
  Applied(const Node& node, const Lanes* x, int lanes, Value* out)
      : node_(node), x_(x), lanes_(lanes), out_(out) {}

  void integer() const {
    switch (node_.op) {
      case Op::negate:
        return integers([](auto a, auto) { return wrapping_subtract(0, a); });
      case Op::add:
        return integers(wrapping_add);
      case Op::subtract:
        return integers(wrapping_subtract);
      case Op::multiply:
        return integers(wrapping_multiply);
      case Op::floor_divide:
        return integers(floor_quotient);
      case Op::modulo:
        return integers(floor_remainder);
      case Op::absolute:
        return integers([](auto a, auto) { return wrapping_absolute(a); });
      case Op::minimum:
        return integers([](auto a, auto b) { return std::min(a, b); });
      case Op::maximum:
        return integers([](auto a, auto b) { return std::max(a, b); });
      default:
        return integers([](auto, auto) { return std::int64_t{0}; });
    }
  }

  void real() const {
    switch (node_.op) {
      case Op::negate:
        return reals([](float a, float) { return -a; });
      case Op::add:
        return reals([](float a, float b) { return a + b; });
      case Op::subtract:
        return reals([](float a, float b) { return a - b; });
      case Op::multiply:
        return reals([](float a, float b) { return a * b; });
      case Op::divide:
        return reals([](float a, float b) { return a / b; });
      case Op::floor_divide:
        return reals([](float a, float b) { return std::floor(a / b); });
      case Op::modulo:
        return reals([](float a, float b) {
          const float multiple = b * std::floor(a / b);
          return a - multiple;
        });
      case Op::absolute:
        return reals([](float a, float) { return std::fabs(a); });
      case Op::floor:
        return reals([](float a, float) { return std::floor(a); });
      case Op::minimum:
        return reals([](float a, float b) {
          return std::isnan(a) || std::isnan(b) ? a + b : (a < b ? a : b);
        });
      case Op::maximum:
        return reals([](float a, float b) {
          return std::isnan(a) || std::isnan(b) ? a + b : (a > b ? a : b);
        });
      case Op::square_root:
        return reals([](float a, float) { return std::sqrt(a); });
      case Op::exponential:
        return reals([](float a, float) { return std::exp(a); });
      case Op::logarithm:
        return reals([](float a, float) { return std::log(a); });
      case Op::hyperbolic_tangent:
        return reals([](float a, float) { return std::tanh(a); });
      default:
        return reals([](float, float) { return 0.0f; });
    }
  }

  void comparison(Type operand_type) const {
    const auto compare = [&](auto f) {
      if (operand_type != Type::real) return integers(f);
      each([f](Value a, Value b) { return Value{.integer = f(a.real, b.real)}; });
    };
    switch (node_.op) {
      case Op::less:
        return compare([](auto a, auto b) { return a < b; });
      case Op::less_equal:
        return compare([](auto a, auto b) { return a <= b; });
      case Op::equal:
        return compare([](auto a, auto b) { return a == b; });
      default:
        return compare([](auto a, auto b) { return a != b; });
    }
  }

  template <class F>
  void integers(F f) const {
    each([f](Value a, Value b) { return Value{.integer = f(a.integer, b.integer)}; });
  }
  template <class F>
  void reals(F f) const {
    each([f](Value a, Value b) { return Value{.real = f(a.real, b.real)}; });
  }
  template <class F>
  void each(F f) const {
    for (int i = 0; i < lanes_; ++i) out_[i] = f(lane(0, i), lane(1, i));
  }
  Value lane(int operand, int i) const { return x_[operand].at[i * x_[operand].step]; }

 private:
  const Node& node_;
  const Lanes* x_;
  int lanes_;
  Value* out_;
};

Value fixed(const Program& program, const Node& node) {
  if (node.op == Op::constant) {
    if (node.type == Type::real) return {.real = static_cast<float>(node.real)};
    return {.integer = node.integer};
  }
  const Parameter& parameter = program.parameters[static_cast<std::size_t>(node.slot)];
  if (node.type == Type::real) return {.real = static_cast<float>(parameter.real)};
  return {.integer = parameter.integer};
}

}  // namespace

void apply(const Program& program, const Node& node, const Lanes* operand, int lanes, Value* out) {
  const Value zero = {.integer = 0};
  Lanes x[4];
  for (int j = 0; j < 4; ++j) x[j] = j < node.operands ? operand[j] : Lanes{&zero, 0};
  const Applied applied(node, x, lanes, out);
  const Type operand_type =
      node.operands > 0 ? program.nodes[node.operand[node.operands - 1]].type : node.type;
  switch (node.op) {
    case Op::constant:
    case Op::parameter: {
      const Value value = fixed(program, node);
      return applied.each([value](Value, Value) { return value; });
    }
    case Op::load: {
      const TensorView& view = program.arrays[static_cast<std::size_t>(node.slot)].view;
      for (int i = 0; i < lanes; ++i) {
        std::int64_t index[max_rank];
        for (int j = 0; j < max_rank; ++j) index[j] = applied.lane(j, i).integer;
        out[i] = element(view, index);
      }
      return;
    }
    case Op::to_real:
      if (operand_type == Type::real) return applied.each([](Value a, Value) { return a; });
      return applied.each(
          [](Value a, Value) { return Value{.real = static_cast<float>(a.integer)}; });
    case Op::select:
      for (int i = 0; i < lanes; ++i) {
        out[i] = applied.lane(0, i).integer != 0 ? applied.lane(1, i) : applied.lane(2, i);
      }
      return;
    case Op::logical_not:
      return applied.integers([](auto a, auto) { return a == 0; });
    case Op::logical_and:
      return applied.integers([](auto a, auto b) { return a & b; });
    case Op::logical_or:
      return applied.integers([](auto a, auto b) { return a | b; });
    case Op::less:
    case Op::less_equal:
    case Op::equal:
    case Op::not_equal:
      return applied.comparison(operand_type);
    default:
      return node.type == Type::real ? applied.real() : applied.integer();
  }
}

std::int64_t name_value(Name name, const Scope& scope, std::int64_t row, std::int64_t col) {
  switch (name) {
    case Name::q:
      return wrapping_add(row, scope.q_start);
    case Name::k:
      return wrapping_add(col, scope.k_start);
    case Name::row:
      return row;
    case Name::col:
      return col;
    case Name::b:
      return scope.b;
    case Name::h:
      return scope.h;
    case Name::h_kv:
      return scope.h_kv;
    case Name::s_q:
      return scope.s_q;
    case Name::s_kv:
      return scope.s_kv;
    case Name::token_q:
      return wrapping_add(row, scope.token_q_start);
    case Name::token_k:
      return wrapping_add(col, scope.token_k_start);
    case Name::s:
      break;
  }
  return 0;
}

}  // namespace onepass::lang::intervals
