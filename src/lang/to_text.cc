// Program -> text that compiles to the same program again.
#include <charconv>
#include <cmath>
#include <limits>

#include "lang/compile.h"
#include "lang/words.h"

namespace onepass::lang {
namespace {

// How tightly a text holds together: operands of a tighter operator need parentheses.
enum Strength {
  choice = 0,
  any = 1,
  all = 2,
  comparison = 3,
  sum = 4,
  product = 5,
  prefix = 6,
  atom = 7
};

struct Text {
  std::string text;
  int strength = atom;
};

Text real_text(double value) {
  if (std::isnan(value)) return {"inf - inf", sum};
  if (std::isinf(value)) return value > 0 ? Text{"inf"} : Text{"-inf", prefix};
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  std::string out(digits, end);
  if (out.find_first_of(".e") == out.npos) out += ".0";
  return {out, std::signbit(value) ? prefix : atom};
}

Text integer_text(std::int64_t value) {
  if (value == std::numeric_limits<std::int64_t>::min()) return {"-9223372036854775807 - 1", sum};
  return {std::to_string(value), value < 0 ? prefix : atom};
}

Text value_text(Type type, std::int64_t integer, double real) {
  if (type == Type::boolean) return {integer != 0 ? "true" : "false"};
  return type == Type::integer ? integer_text(integer) : real_text(real);
}

// `atom` for every operation that is not written between its two operands.
int strength_of(Op op) {
  switch (op) {
    case Op::logical_or:
      return any;
    case Op::logical_and:
      return all;
    case Op::less:
    case Op::less_equal:
    case Op::equal:
    case Op::not_equal:
      return comparison;
    case Op::add:
    case Op::subtract:
      return sum;
    case Op::multiply:
    case Op::divide:
    case Op::floor_divide:
    case Op::modulo:
      return product;
    default:
      return atom;
  }
}

bool takes_reals(Op op) {
  return op == Op::floor || op == Op::square_root || op == Op::exponential || op == Op::logarithm ||
         op == Op::hyperbolic_tangent;
}

class Writer {
 public:
  explicit Writer(const Program& program)
      : program_(program), texts_(program.nodes.size()), name_("t") {
    const auto clash = [&](const std::string& word) { return word.rfind(name_, 0) == 0; };
    for (const Array& array : program.arrays) {
      while (clash(array.name)) name_ += '_';
    }
    for (const Parameter& parameter : program.parameters) {
      while (clash(parameter.name)) name_ += '_';
    }
  }

  std::string write() {
    constexpr std::size_t longest = 200;
    std::string definitions;
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      texts_[i] = node_text(program_.nodes[i]);
      if (texts_[i].text.size() <= longest || static_cast<std::int32_t>(i) == program_.root) {
        continue;
      }
      std::string name = name_ + std::to_string(i);
      definitions += name + " = " + texts_[i].text + "; ";
      texts_[i] = {std::move(name)};
    }
    return definitions + texts_[static_cast<std::size_t>(program_.root)].text;
  }

 private:
  const Node& operand_node(const Node& node, std::size_t i) const {
    return program_.nodes[static_cast<std::size_t>(node.operand[i])];
  }

  // An int that becomes a float is written bare where another operand, or the operation, makes it
  // one; elsewhere as `floor(q)`, which is the same conversion.
  bool converts_alone(const Node& node, std::size_t i) const {
    if (operand_node(node, i).op != Op::to_real) return false;
    if (node.op == Op::divide || takes_reals(node.op)) return false;
    for (std::size_t j = node.op == Op::select ? 1 : 0; j < node.operands; ++j) {
      if (operand_node(node, j).op != Op::to_real) return false;
    }
    return true;
  }

  Text operand(const Node& node, std::size_t i) const {
    const Text& text = texts_[static_cast<std::size_t>(node.operand[i])];
    return converts_alone(node, i) ? Text{"floor(" + text.text + ")"} : text;
  }

  bool is_zero(const Node& node) const {
    if (node.op == Op::constant) return node.real == 0.0 && node.integer == 0;
    if (node.op != Op::parameter) return false;
    const Parameter& held = program_.parameters[static_cast<std::size_t>(node.slot)];
    return held.name.empty() && held.real == 0.0 && held.integer == 0;
  }

  // Operand `i`, in parentheses when it holds together less than `least`.
  std::string part(const Node& node, std::size_t i, int least) const {
    const Text inner = operand(node, i);
    return inner.strength >= least ? inner.text : "(" + inner.text + ")";
  }

  Text node_text(const Node& node) const {
    const std::string sign(spelling(node.op));
    switch (node.op) {
      case Op::constant:
        return value_text(node.type, node.integer, node.real);
      case Op::parameter: {
        const Parameter& held = program_.parameters[static_cast<std::size_t>(node.slot)];
        return held.name.empty() ? value_text(held.type, held.integer, held.real) : Text{held.name};
      }
      case Op::name:
        return {std::string(spelling(node.name))};
      case Op::to_real:
        return operand(node, 0);
      case Op::negate:
      case Op::logical_not:
        return {sign + part(node, 0, prefix), prefix};
      case Op::select:
        return {part(node, 0, any) + " ? " + part(node, 1, choice) + " : " + part(node, 2, choice),
                choice};
      default:
        break;
    }
    const int own = strength_of(node.op);
    if (own == atom) return {call(node, sign)};
    // A divisor that came out as 0 is legal, only a literal one is not.
    if (own == product && node.op != Op::multiply && is_zero(operand_node(node, 1))) {
      return {part(node, 0, own) + " " + sign + " (" + operand(node, 1).text + " - 0)", own};
    }
    const int left = own == comparison ? own + 1 : own;
    return {part(node, 0, left) + " " + sign + " " + part(node, 1, own + 1), own};
  }

  std::string call(const Node& node, const std::string& function) const {
    const bool load = node.op == Op::load;
    std::string out = load ? program_.arrays[static_cast<std::size_t>(node.slot)].name : function;
    if (node.operands == 0) return out;
    out += load ? "[" : "(";
    for (std::size_t i = 0; i < node.operands; ++i) {
      if (i > 0) out += ", ";
      out += operand(node, i).text;
    }
    return out + (load ? "]" : ")");
  }

  const Program& program_;
  std::vector<Text> texts_;
  std::string name_;  // of terms too long to be repeated, with their number
};

}  // namespace

std::string to_text(const Program& program) { return Writer(program).write(); }

}  // namespace onepass::lang
