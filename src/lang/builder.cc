#include "lang/builder.h"

#include <bit>

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

// What makes two nodes the same.
Builder::Key Builder::key_of(const Node& node) {
  const std::uint64_t value = node.type == Type::real ? std::bit_cast<std::uint64_t>(node.real)
                                                      : static_cast<std::uint64_t>(node.integer);
  const std::int32_t detail =
      node.op == Op::name ? static_cast<std::int32_t>(node.name) : node.slot;
  return {node.op, node.type, detail, node.operand, value};
}

// The one place that creates nodes.
std::int32_t Builder::add(const Node& node) {
  const auto [place, fresh] = made_.emplace(key_of(node), size());
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
  const Key key = key_of(node);
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
