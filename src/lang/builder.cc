#include "lang/builder.h"

#include <bit>
#include <cmath>

#include "lang/fold.h"

namespace onepass::lang {
namespace {

constexpr std::int32_t none = -1;

std::uint8_t varies_of(Name name) {
  switch (name) {
    case Name::row:
      return varies_query;
    case Name::col:
      return varies_key;
    // Where a sequence starts may differ per sequence.
    case Name::q:
    case Name::token_q:
      return varies_query | varies_batch;
    case Name::k:
    case Name::token_k:
      return varies_key | varies_batch;
    case Name::b:
    case Name::s_q:
    case Name::s_kv:
      return varies_batch;
    case Name::h:
    case Name::h_kv:
      return varies_head;
    case Name::s:
      return varies_logit;
  }
  return 0;
}

Type element_type(DType dtype) {
  if (is_float(dtype)) return Type::real;
  return dtype == DType::boolean ? Type::boolean : Type::integer;
}

Type result_type(const Node& node, Type operand) {
  switch (node.op) {
    case Op::to_real:
      return Type::real;
    case Op::logical_not:
    case Op::logical_and:
    case Op::logical_or:
    case Op::less:
    case Op::less_equal:
    case Op::equal:
    case Op::not_equal:
      return Type::boolean;
    default:
      return operand;
  }
}

}  // namespace

Builder::Builder(const Program& program) : program_(program) {
  for (const Parameter& parameter : program_.parameters) {
    literal_.push_back(parameter.name.empty());
  }
  for (std::int32_t i = 0; i < size(); ++i) {
    const Node& node = at(i);
    const std::uint64_t value = node.type == Type::real ? std::bit_cast<std::uint64_t>(node.real)
                                                        : static_cast<std::uint64_t>(node.integer);
    const std::int32_t detail =
        node.op == Op::name ? static_cast<std::int32_t>(node.name) : node.slot;
    made_.emplace(Key{node.op, node.type, detail, node.operand, value}, i);
  }
}

// The one place that creates nodes.
std::int32_t Builder::add(const Node& node) {
  const std::uint64_t value = node.type == Type::real ? std::bit_cast<std::uint64_t>(node.real)
                                                      : static_cast<std::uint64_t>(node.integer);
  const std::int32_t detail =
      node.op == Op::name ? static_cast<std::int32_t>(node.name) : node.slot;
  const auto [place, fresh] =
      made_.emplace(Key{node.op, node.type, detail, node.operand, value}, size());
  if (fresh) program_.nodes.push_back(node);
  return place->second;
}

std::int32_t Builder::constant(bool value) {
  Node node;
  node.integer = value ? 1 : 0;
  return add(node);
}

std::int32_t Builder::constant(std::int64_t value) {
  Node node;
  node.type = Type::integer;
  node.integer = value;
  return add(node);
}

std::int32_t Builder::constant(double value) {
  Node node;
  node.type = Type::real;
  node.real = rounded(kind(), value);
  return add(node);
}

std::int32_t Builder::parameter(const Parameter& parameter, bool literal) {
  Node node;
  node.op = Op::parameter;
  node.type = parameter.type;
  node.slot = static_cast<std::int32_t>(program_.parameters.size());
  program_.parameters.push_back(parameter);
  program_.parameters.back().real = rounded(kind(), parameter.real);
  literal_.push_back(literal);
  return add(node);
}

std::int32_t Builder::literal(std::int64_t value) {
  if (value == 0 || value == 1) return constant(value);
  return parameter({"", Type::integer, value, 0.0}, true);
}

std::int32_t Builder::literal(double value) {
  if (value == 0.0 || value == 1.0) return constant(value);
  return parameter({"", Type::real, 0, value}, true);
}

std::int32_t Builder::argument(const Parameter& wanted) {
  for (std::int32_t i = 0; i < size(); ++i) {
    if (at(i).op != Op::parameter) continue;
    if (program_.parameters[static_cast<std::size_t>(at(i).slot)].name == wanted.name) return i;
  }
  return parameter(wanted, false);
}

std::int32_t Builder::name(Name name) {
  Node node;
  node.op = Op::name;
  node.type = name == Name::s ? Type::real : Type::integer;
  node.varies = varies_of(name);
  node.name = name;
  return add(node);
}

std::int32_t Builder::array(const std::string& name, const TensorView& view) {
  for (std::size_t i = 0; i < program_.arrays.size(); ++i) {
    if (program_.arrays[i].name == name) return static_cast<std::int32_t>(i);
  }
  program_.arrays.push_back({name, view});
  return static_cast<std::int32_t>(program_.arrays.size()) - 1;
}

std::int32_t Builder::load(std::int32_t array, std::span<const std::int32_t> index) {
  Node node;
  node.op = Op::load;
  node.type = element_type(program_.arrays[static_cast<std::size_t>(array)].view.dtype);
  node.slot = array;
  for (const std::int32_t i : index) {
    node.varies |= at(i).varies;
    node.operand[node.operands++] = i;
  }
  return add(node);
}

std::int32_t Builder::unary(Op op, std::int32_t a) {
  Node node;
  node.op = op;
  node.operands = 1;
  node.operand = {a, 0, 0, 0};
  node.type = result_type(node, type(a));
  return make(node);
}

std::int32_t Builder::binary(Op op, std::int32_t a, std::int32_t b) {
  Node node;
  node.op = op;
  node.operands = 2;
  node.operand = {a, b, 0, 0};
  node.type = result_type(node, type(a));
  return make(node);
}

std::int32_t Builder::select(std::int32_t condition, std::int32_t yes, std::int32_t no) {
  Node node;
  node.op = Op::select;
  node.operands = 3;
  node.operand = {condition, yes, no, 0};
  node.type = type(yes);
  return make(node);
}

std::int32_t Builder::as_real(std::int32_t node) {
  return type(node) == Type::real ? node : unary(Op::to_real, node);
}

std::int32_t Builder::divisor(std::int32_t node) {
  if (at(node).op != Op::parameter) return node;
  const auto slot = static_cast<std::size_t>(at(node).slot);
  if (!literal_[slot]) return node;
  const Parameter& known = program_.parameters[slot];
  return known.type == Type::real ? constant(known.real) : constant(known.integer);
}

// Simplified terms are remembered under their operands too, so that a term of parameters written
// twice is one parameter.
std::int32_t Builder::make(Node node) {
  const Key key{node.op, node.type, node.slot, node.operand, 0};
  if (const auto found = made_.find(key); found != made_.end()) return found->second;
  for (int i = 0; i < node.operands; ++i) {
    node.varies |= at(node.operand[static_cast<std::size_t>(i)]).varies;
  }
  std::int32_t out = simplify(node);
  if (out == none) out = fold(node);
  if (out == none) return add(node);
  made_.emplace(key, out);
  return out;
}

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

std::int32_t Builder::fold(const Node& node) {
  std::array<Value, 4> values;
  bool constants = true;
  bool literals = true;
  for (std::size_t i = 0; i < node.operands; ++i) {
    const std::int32_t operand = node.operand[i];
    if (!is_value(operand)) return none;
    const Node& known = at(operand);
    if (known.op == Op::constant) {
      values[i] = {known.type, known.integer, known.real};
      continue;
    }
    constants = false;
    const auto slot = static_cast<std::size_t>(known.slot);
    const Parameter& held = program_.parameters[slot];
    literals = literals && literal_[slot];
    values[i] = {held.type, held.integer, held.real};
  }
  const Value value = apply(kind(), node.op, {values.data(), node.operands});
  if (!constants) return parameter({"", value.type, value.integer, value.real}, literals);
  if (value.type == Type::real) return constant(value.real);
  return value.type == Type::integer ? constant(value.integer) : constant(value.integer != 0);
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

Program Builder::finish(std::int32_t root) const {
  const auto count = static_cast<std::size_t>(root) + 1;
  std::vector<bool> needed(count, false);
  needed[count - 1] = true;
  for (std::size_t i = count; i-- > 0;) {
    if (!needed[i]) continue;
    const Node& node = program_.nodes[i];
    for (std::size_t j = 0; j < node.operands; ++j) {
      needed[static_cast<std::size_t>(node.operand[j])] = true;
    }
  }
  Program out;
  out.kind = program_.kind;
  std::vector<std::int32_t> moved(count, none);
  std::vector<std::int32_t> parameters(program_.parameters.size(), none);
  std::vector<std::int32_t> arrays(program_.arrays.size(), none);
  for (std::size_t i = 0; i < count; ++i) {
    if (!needed[i]) continue;
    Node node = program_.nodes[i];
    for (std::size_t j = 0; j < node.operands; ++j) {
      node.operand[j] = moved[static_cast<std::size_t>(node.operand[j])];
    }
    const auto slot = static_cast<std::size_t>(node.slot);
    if (node.op == Op::parameter) {
      if (parameters[slot] == none) {
        parameters[slot] = static_cast<std::int32_t>(out.parameters.size());
        out.parameters.push_back(program_.parameters[slot]);
      }
      node.slot = parameters[slot];
    } else if (node.op == Op::load) {
      if (arrays[slot] == none) {
        arrays[slot] = static_cast<std::int32_t>(out.arrays.size());
        out.arrays.push_back(program_.arrays[slot]);
      }
      node.slot = arrays[slot];
    }
    moved[i] = static_cast<std::int32_t>(out.nodes.size());
    out.nodes.push_back(node);
  }
  out.root = moved[count - 1];
  return out;
}

}  // namespace onepass::lang
