#include "lang/exact.h"

#include <algorithm>
#include <cmath>

namespace onepass::lang::intervals {
namespace {

constexpr std::uint8_t both = varies_query | varies_key;

/// Bounds on positions that keep sums of them from overflowing.
constexpr std::int64_t far = std::int64_t{1} << 61;

std::int64_t integer_result(Op op, std::int64_t a, std::int64_t b) {
  switch (op) {
    case Op::negate:
      return wrapping_subtract(0, a);
    case Op::add:
      return wrapping_add(a, b);
    case Op::subtract:
      return wrapping_subtract(a, b);
    case Op::multiply:
      return wrapping_multiply(a, b);
    case Op::floor_divide:
      return floor_quotient(a, b);
    case Op::modulo:
      return floor_remainder(a, b);
    case Op::absolute:
      return a < 0 ? wrapping_subtract(0, a) : a;
    case Op::minimum:
      return std::min(a, b);
    case Op::maximum:
      return std::max(a, b);
    default:
      return 0;
  }
}

float real_result(Op op, float a, float b) {
  switch (op) {
    case Op::negate:
      return -a;
    case Op::add:
      return a + b;
    case Op::subtract:
      return a - b;
    case Op::multiply:
      return a * b;
    case Op::divide:
      return a / b;
    case Op::floor_divide:
      return std::floor(a / b);
    case Op::modulo: {
      const float multiple = b * std::floor(a / b);
      return a - multiple;
    }
    case Op::absolute:
      return std::fabs(a);
    case Op::floor:
      return std::floor(a);
    case Op::minimum:
      return std::isnan(a) || std::isnan(b) ? a + b : (a < b ? a : b);
    case Op::maximum:
      return std::isnan(a) || std::isnan(b) ? a + b : (a > b ? a : b);
    case Op::square_root:
      return std::sqrt(a);
    case Op::exponential:
      return std::exp(a);
    case Op::logarithm:
      return std::log(a);
    case Op::hyperbolic_tangent:
      return std::tanh(a);
    default:
      return 0.0f;
  }
}

template <class T>
bool comparison(Op op, T a, T b) {
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

}  // namespace

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

Value apply(const Program& program, const Node& node, const Value* operand) {
  const Type operand_type =
      node.operands > 0 ? program.nodes[node.operand[node.operands - 1]].type : node.type;
  switch (node.op) {
    case Op::constant:
      if (node.type == Type::real) return {.real = static_cast<float>(node.real)};
      return {.integer = node.integer};
    case Op::parameter: {
      const Parameter& parameter = program.parameters[static_cast<std::size_t>(node.slot)];
      if (node.type == Type::real) return {.real = static_cast<float>(parameter.real)};
      return {.integer = parameter.integer};
    }
    case Op::load: {
      std::int64_t index[max_rank] = {};
      for (int i = 0; i < node.operands; ++i) index[i] = operand[i].integer;
      return element(program.arrays[static_cast<std::size_t>(node.slot)].view, index);
    }
    case Op::to_real:
      if (operand_type == Type::real) return operand[0];
      return {.real = static_cast<float>(operand[0].integer)};
    case Op::select:
      return operand[0].integer != 0 ? operand[1] : operand[2];
    case Op::logical_not:
      return {.integer = operand[0].integer == 0};
    case Op::logical_and:
      return {.integer = operand[0].integer & operand[1].integer};
    case Op::logical_or:
      return {.integer = operand[0].integer | operand[1].integer};
    case Op::less:
    case Op::less_equal:
    case Op::equal:
    case Op::not_equal:
      if (operand_type == Type::real) {
        return {.integer = comparison(node.op, operand[0].real, operand[1].real)};
      }
      return {.integer = comparison(node.op, operand[0].integer, operand[1].integer)};
    default:
      break;
  }
  if (node.type == Type::real) {
    return {.real = real_result(node.op, operand[0].real, operand[1].real)};
  }
  return {.integer = integer_result(node.op, operand[0].integer, operand[1].integer)};
}

Constants::Constants(const Program& program, const Scope& scope, const Sides& sides) {
  if (!sides.analysed) return;
  for (int i = 0; i <= program.root; ++i) {
    if (sides.of[i] & both) continue;
    const Node& node = program.nodes[i];
    if (node.op == Op::name) {
      values_[i] = {.integer = name_value(node.name, scope, 0, 0)};
      continue;
    }
    Value operand[4] = {};
    for (int j = 0; j < node.operands; ++j) {
      if (node.op == Op::load && !index_counts(program, node, j)) continue;
      operand[j] = values_[node.operand[j]];
    }
    values_[i] = apply(program, node, operand);
  }
}

TermReader::TermReader(const Program& program, const Scope& scope, const Sides& sides,
                       const Constants& constants, const Term& term)
    : program_(&program), scope_(scope), term_(term) {
  find_direct(sides, constants);
}

void TermReader::find_direct(const Sides& sides, const Constants& constants) {
  const Node& load = program_->nodes[term_.node];
  if (load.op != Op::load) return;
  array_ = &program_->arrays[static_cast<std::size_t>(load.slot)].view;
  bool moves = false;
  bool outside = false;
  for (int dim = 0; dim < load.operands; ++dim) {
    if (!index_counts(*program_, load, dim)) continue;
    const int operand = load.operand[dim];
    const std::int64_t size = array_->shape[dim];
    if (!(sides.of[operand] & both)) {
      const std::int64_t index = constants[operand].integer;
      outside |= index < 0 || index >= size;
      if (!outside) offset_ += index * array_->strides[dim];
      continue;
    }
    const Node& place = program_->nodes[operand];
    if (place.op != Op::name || moves) return;
    start_ = name_value(place.name, scope_, 0, 0);
    if (start_ < -far || start_ > far) return;
    moves = true;
    size_ = size;
    stride_ = array_->strides[dim];
  }
  if (outside) size_ = 0;
  direct_ = moves;
}

Value TermReader::compute(const Constants& constants, std::int64_t index) const {
  Value values[max_nodes];
  term_.inside.for_each([&](int i) {
    const Node& node = program_->nodes[i];
    if (node.op == Op::name) {
      values[i] = {.integer = name_value(node.name, scope_, index, index)};
      return;
    }
    Value operand[4] = {};
    for (int j = 0; j < node.operands; ++j) {
      if (node.op == Op::load && !index_counts(*program_, node, j)) continue;
      const int from = node.operand[j];
      operand[j] = term_.inside.has(from) ? values[from] : constants[from];
    }
    values[i] = apply(*program_, node, operand);
  });
  return values[term_.node];
}

}  // namespace onepass::lang::intervals
