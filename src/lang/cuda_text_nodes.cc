// The expression of each node.
#include <cmath>
#include <cstdio>
#include <limits>

#include "lang/cuda_text_writer.h"

namespace onepass::lang {
namespace {

std::string number(std::int64_t value) { return std::to_string(value); }

std::string integer_literal(std::int64_t value) {
  if (value == std::numeric_limits<std::int64_t>::min()) return "Int(-9223372036854775807ll - 1)";
  return "Int(" + number(value) + "ll)";
}

std::string float_literal(double value) {
  const auto rounded = static_cast<float>(value);
  if (std::isnan(rounded)) return "not_a_number()";
  if (std::isinf(rounded)) return rounded < 0 ? "-infinity()" : "infinity()";
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.9g", static_cast<double>(rounded));
  std::string out = text.data();
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out + "f";
}

std::string call(const char* function, const std::string& a) {
  return std::string(function) + "(" + a + ")";
}
std::string call(const char* function, const std::string& a, const std::string& b) {
  return std::string(function) + "(" + a + ", " + b + ")";
}
std::string infix(const std::string& a, const char* op, const std::string& b) {
  return a + " " + op + " " + b;
}
std::string floor_quotient(const std::string& a, const std::string& b) {
  return call("floorf", call("__fdiv_rn", a, b));
}

// The structs as the functions' arguments are called.
constexpr std::array<const char*, level_count> state_names = {"c.", "r.", "k.", ""};

}  // namespace

const char* CudaTextWriter::type_of(const Node& at) const {
  if (at.type == Type::real) return "float";
  return at.type == Type::integer ? "Int" : "bool";
}

// How code of level `from` spells a node of the same or a slower level: always one word or one
// call.
std::string CudaTextWriter::value_of(std::int32_t i, Level from) {
  const Node& at = node(i);
  if (at.op == Op::name && at.name == Name::s) return "s";
  if (at.op != Op::constant) return variable("n" + number(i), type_of(at), level(i), from);
  if (at.type == Type::real) return float_literal(at.real);
  if (at.type == Type::integer) return integer_literal(at.integer);
  return at.integer != 0 ? "true" : "false";
}

std::string CudaTextWriter::variable(const std::string& name, const std::string& type, Level level,
                                     Level from) {
  if (level == from) return name;
  const std::string member = "  " + type + " " + name + ";\n";
  if (members(level).find(member) == std::string::npos) members(level) += member;
  return state_names[static_cast<std::size_t>(level)] + name;
}

// Where the positions of a sequence's rows or keys start.
std::string CudaTextWriter::start(Name name, Level from) {
  const char* const word = name == Name::q         ? "q_start"
                           : name == Name::k       ? "k_start"
                           : name == Name::token_q ? "token_q_start"
                                                   : "token_k_start";
  const std::string member = std::string("  Int ") + word + ";\n";
  if (members(Level::scope).find(member) == std::string::npos) {
    define(Level::scope, "Int", word, std::string("Int(scope.") + word + ")");
  }
  return variable(word, "Int", Level::scope, from);
}

void CudaTextWriter::define(Level level, const std::string& type, const std::string& name,
                            const std::string& expression) {
  body(level) += "  const " + type + " " + name + " = " + expression + ";\n";
}

void CudaTextWriter::write_nodes() {
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(program_.nodes.size()); ++i) {
    const Node& at = node(i);
    if (!needed_[index(i)] || at.op == Op::constant) continue;
    if (at.op == Op::name && at.name == Name::s) continue;
    const std::string expression =
        at.op == Op::load ? load(i, level(i)) : expression_of(i, level(i));
    define(level(i), type_of(at), "n" + number(i), expression);
  }
}

std::string CudaTextWriter::name_of(const Node& at, Level level) {
  switch (at.name) {
    case Name::q:
      return "add(row, " + start(Name::q, level) + ")";
    case Name::token_q:
      return "add(row, " + start(Name::token_q, level) + ")";
    case Name::k:
      return "add(col, " + start(Name::k, level) + ")";
    case Name::token_k:
      return "add(col, " + start(Name::token_k, level) + ")";
    case Name::row:
      return "row";
    case Name::col:
      return "col";
    case Name::b:
      return "Int(scope.b)";
    case Name::h:
      return "Int(scope.h)";
    case Name::h_kv:
      return "Int(scope.h_kv)";
    case Name::s_q:
      return "Int(scope.s_q)";
    case Name::s_kv:
      return "Int(scope.s_kv)";
    case Name::s:
      break;
  }
  return "s";
}

// Float operations of a mask are never contracted.
std::string CudaTextWriter::real_operation(const char* op, const char* rounded,
                                           const std::string& a, const std::string& b) const {
  return program_.kind == Kind::mask ? call(rounded, a, b) : infix(a, op, b);
}

// A score multiplies by the reciprocal of a divisor that several pairs share.
std::string CudaTextWriter::divide(const Node& at, Level level, const std::string& a,
                                   const std::string& b) {
  if (program_.kind == Kind::mask) return call("__fdiv_rn", a, b);
  const std::int32_t divisor = at.operand[1];
  const Level divisor_level = this->level(divisor);
  if (divisor_level == level) return call(options_.fast ? "__fdividef" : "__fdiv_rn", a, b);
  const std::string name = "over_n" + number(divisor);
  if (members(divisor_level).find(" " + name + ";") == std::string::npos) {
    const std::string value = value_of(divisor, divisor_level);
    define(divisor_level, "float", name,
           options_.fast ? call("__fdiv_rn", "1.0f", value) : call("reciprocal", value));
  }
  const std::string over = variable(name, "float", divisor_level, level);
  // No more is lost than by __fdividef, which fails for the smallest and largest divisors too.
  if (options_.fast) return infix(a, "*", over);
  return "divide_by_shared(" + a + ", " + b + ", " + over + ")";
}

// A divisor known to be a power of two leaves no division.
std::string CudaTextWriter::integer_division(const Node& at, const std::string& a,
                                             const std::string& b) const {
  const bool remainder = at.op == Op::modulo;
  const Node& divisor = operand(at, 1);
  const std::int64_t n = divisor.integer;
  if (divisor.op != Op::constant || n <= 0 || (n & (n - 1)) != 0) {
    return call(remainder ? "modulo" : "floor_divide", a, b);
  }
  if (remainder) return infix(a, "&", integer_literal(n - 1));
  std::int64_t shift = 0;
  while ((std::int64_t{1} << shift) < n) ++shift;
  return infix(a, ">>", number(shift));
}

std::string CudaTextWriter::expression_of(std::int32_t i, Level level) {
  const Node& at = node(i);
  const bool real = at.type == Type::real;
  const auto operand_text = [&](std::size_t j) {
    return at.operands > j ? value_of(at.operand[j], level) : std::string();
  };
  const std::string a = operand_text(0), b = operand_text(1);
  const bool fast = options_.fast && program_.kind == Kind::score;
  switch (at.op) {
    case Op::constant:
    case Op::load:
      break;  // elsewhere
    case Op::parameter: {
      const std::string slot = "[" + number(at.slot) + "]";
      if (real) return "p.reals" + slot;
      return (at.type == Type::integer ? "Int(p.integers" : "bool(p.integers") + slot + ")";
    }
    case Op::name:
      return name_of(at, level);
    case Op::to_real:
      return call("real", a);
    case Op::negate:
      return real ? "-(" + a + ")" : call("negate", a);
    case Op::add:
      return real ? real_operation("+", "__fadd_rn", a, b) : call("add", a, b);
    case Op::subtract:
      return real ? real_operation("-", "__fsub_rn", a, b) : call("subtract", a, b);
    case Op::multiply:
      return real ? real_operation("*", "__fmul_rn", a, b) : call("multiply", a, b);
    case Op::divide:
      return divide(at, level, a, b);
    case Op::floor_divide:
      return real ? floor_quotient(a, b) : integer_division(at, a, b);
    case Op::modulo:
      if (!real) return integer_division(at, a, b);
      return real_operation("-", "__fsub_rn", a,
                            real_operation("*", "__fmul_rn", b, floor_quotient(a, b)));
    case Op::logical_not:
      return "!" + a;
    case Op::logical_and:
      return infix(a, "&", b);
    case Op::logical_or:
      return infix(a, "|", b);
    case Op::less:
      return infix(a, "<", b);
    case Op::less_equal:
      return infix(a, "<=", b);
    case Op::equal:
      return infix(a, "==", b);
    case Op::not_equal:
      return infix(a, "!=", b);
    case Op::select:
      return a + " ? " + b + " : " + operand_text(2);
    case Op::absolute:
      return call(real ? "fabsf" : "absolute", a);
    case Op::minimum:
      return call("minimum", a, b);
    case Op::maximum:
      return call("maximum", a, b);
    case Op::floor:
      return call("floorf", a);
    case Op::square_root:
      return call("__fsqrt_rn", a);
    case Op::exponential:
      return call(fast ? "__expf" : "expf", a);
    case Op::logarithm:
      return call(fast ? "__logf" : "logf", a);
    case Op::hyperbolic_tangent:
      return call(fast ? "fast_tanh" : "tanhf", a);
  }
  return {};
}

// What an index adds to the address, and whether it lies inside, is computed at the index's level.
std::string CudaTextWriter::load(std::int32_t i, Level level) {
  const Node& at = node(i);
  const TensorView& view = program_.arrays[index(at.slot)].view;
  const char* const zero = at.type == Type::real      ? "0.0f"
                           : at.type == Type::integer ? "Int(0)"
                                                      : "false";
  std::array<std::string, level_count> offset, check;
  for (std::size_t dim = 0; dim < static_cast<std::size_t>(view.rank); ++dim) {
    if (view.shape[dim] == 0) return zero;
    if (view.shape[dim] == 1) continue;
    const auto where = static_cast<std::size_t>(this->level(at.operand[dim]));
    const std::string subscript = value_of(at.operand[dim], static_cast<Level>(where));
    const std::string slot = number(at.slot) + "[" + number(static_cast<std::int64_t>(dim)) + "]";
    if (!offset[where].empty()) offset[where] += " + ";
    if (!check[where].empty()) check[where] += " && ";
    offset[where] += "int64(" + subscript + ")";
    if (view.strides[dim] != 1) offset[where] += " * p.strides_" + slot;
    check[where] += "inside(" + subscript + ", p.shape_" + slot + ")";
  }
  std::string address, guard;
  for (std::size_t where = 0; where < level_count; ++where) {
    if (offset[where].empty()) continue;
    std::string part = offset[where], inside = check[where];
    if (static_cast<Level>(where) != level) {
      const std::string id = number(i);
      define(static_cast<Level>(where), "int64", "at_" + id, part);
      define(static_cast<Level>(where), "bool", "in_" + id, inside);
      part = variable("at_" + id, "int64", static_cast<Level>(where), level);
      inside = variable("in_" + id, "bool", static_cast<Level>(where), level);
    }
    address += (address.empty() ? "" : " + ") + part;
    guard += (guard.empty() ? "" : " && ") + inside;
  }
  std::string element =
      "p.array_" + number(at.slot) + "[" + (address.empty() ? "0" : address) + "]";
  element = at.type == Type::real      ? call("element", element)
            : at.type == Type::integer ? call("Int", element)
                                       : element + " != 0";
  return guard.empty() ? element : guard + " ? " + element + " : " + zero;
}

}  // namespace onepass::lang
