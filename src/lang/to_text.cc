// Program -> text that compiles to the same program again.
#include <charconv>
#include <cmath>
#include <limits>

#include "lang/compile.h"
#include "lang/words.h"

namespace onepass::lang {
namespace {

std::string real_text(double value) {
  if (std::isnan(value)) return "(inf - inf)";
  if (std::isinf(value)) return value > 0 ? "inf" : "(-inf)";
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, std::fabs(value)).ptr;
  std::string out(digits, end);
  if (out.find_first_of(".e") == out.npos) out += ".0";
  return std::signbit(value) ? "(-" + out + ")" : out;
}

std::string integer_text(std::int64_t value) {
  if (value >= 0) return std::to_string(value);
  if (value == std::numeric_limits<std::int64_t>::min()) return "(-9223372036854775807 - 1)";
  return std::string("(").append(std::to_string(value)).append(")");
}

std::string value_text(Type type, std::int64_t integer, double real) {
  if (type == Type::boolean) return integer != 0 ? "true" : "false";
  return type == Type::integer ? integer_text(integer) : real_text(real);
}

bool is_infix(Op op) {
  switch (op) {
    case Op::add:
    case Op::subtract:
    case Op::multiply:
    case Op::divide:
    case Op::floor_divide:
    case Op::modulo:
    case Op::logical_and:
    case Op::logical_or:
    case Op::less:
    case Op::less_equal:
    case Op::equal:
    case Op::not_equal:
      return true;
    default:
      return false;
  }
}

std::string node_text(const Program& program, const Node& node,
                      const std::vector<std::string>& texts) {
  const auto operand = [&](std::size_t i) -> const std::string& {
    return texts[static_cast<std::size_t>(node.operand[i])];
  };
  const std::string sign(spelling(node.op));
  switch (node.op) {
    case Op::constant:
      return value_text(node.type, node.integer, node.real);
    case Op::parameter: {
      const Parameter& held = program.parameters[static_cast<std::size_t>(node.slot)];
      return held.name.empty() ? value_text(held.type, held.integer, held.real) : held.name;
    }
    case Op::name:
      return std::string(spelling(node.name));
    case Op::to_real:
      return operand(0);
    case Op::negate:
    case Op::logical_not:
      return "(" + sign + operand(0) + ")";
    case Op::select:
      return "(" + operand(0) + " ? " + operand(1) + " : " + operand(2) + ")";
    default:
      break;
  }
  if (is_infix(node.op)) return "(" + operand(0) + " " + sign + " " + operand(1) + ")";
  const bool load = node.op == Op::load;
  std::string out = load ? program.arrays[static_cast<std::size_t>(node.slot)].name : sign;
  if (node.operands == 0) return out;
  out += load ? "[" : "(";
  for (std::size_t i = 0; i < node.operands; ++i) out += (i == 0 ? "" : ", ") + operand(i);
  return out + (load ? "]" : ")");
}

}  // namespace

// Terms used twice are written twice while that stays short, else given a name of their own.
std::string to_text(const Program& program) {
  constexpr std::size_t longest = 200;
  std::vector<int> uses(program.nodes.size(), 0);
  for (const Node& node : program.nodes) {
    for (std::size_t i = 0; i < node.operands; ++i) {
      ++uses[static_cast<std::size_t>(node.operand[i])];
    }
  }
  std::string named;
  std::vector<std::string> texts(program.nodes.size());
  for (std::size_t i = 0; i < program.nodes.size(); ++i) {
    texts[i] = node_text(program, program.nodes[i], texts);
    if (texts[i].size() <= longest || static_cast<std::int32_t>(i) == program.root) continue;
    const std::string name = std::string("t").append(std::to_string(i));
    named += name + " = " + texts[i] + "; ";
    texts[i] = name;
  }
  std::string out = texts[static_cast<std::size_t>(program.root)];
  const bool enclosed = is_infix(program.top().op) || program.top().op == Op::select;
  if (enclosed) out = out.substr(1, out.size() - 2);
  return named + out;
}

}  // namespace onepass::lang
