#include "interval_program.h"

#include <bit>
#include <cmath>
#include <limits>

namespace onepass::lang::testing {
namespace {

struct Value {
  std::int64_t i = 0;
  float f = 0.0f;
};

float half_to_float(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int mantissa = bits & 1023;
  const float sign = bits & 0x8000 ? -1.0f : 1.0f;
  if (exponent == 31) {
    return mantissa == 0 ? sign * std::numeric_limits<float>::infinity()
                         : std::numeric_limits<float>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25);
}

Value load(const TensorView& view, const std::int64_t* index) {
  std::int64_t offset = 0;
  for (int dim = 0; dim < view.rank; ++dim) {
    const std::int64_t i = view.shape[dim] == 1 ? 0 : index[dim];
    if (i < 0 || i >= view.shape[dim]) return {};
    offset += i * view.strides[dim];
  }
  switch (view.dtype) {
    case DType::float64: {
      return {0, static_cast<float>(static_cast<const double*>(view.data)[offset])};
    }
    case DType::float32:
      return {0, static_cast<const float*>(view.data)[offset]};
    case DType::bfloat16: {
      const std::uint32_t bits = static_cast<const std::uint16_t*>(view.data)[offset];
      return {0, std::bit_cast<float>(bits << 16)};
    }
    case DType::float16:
      return {0, half_to_float(static_cast<const std::uint16_t*>(view.data)[offset])};
    case DType::int64:
      return {static_cast<const std::int64_t*>(view.data)[offset], 0};
    case DType::int32:
      return {static_cast<const std::int32_t*>(view.data)[offset], 0};
    case DType::uint8:
      return {static_cast<const std::uint8_t*>(view.data)[offset], 0};
    case DType::boolean:
      return {static_cast<const std::uint8_t*>(view.data)[offset] != 0, 0};
  }
  return {};
}

std::int64_t wrap(__int128 x) { return static_cast<std::int64_t>(static_cast<std::uint64_t>(x)); }

__int128 floor_div(__int128 a, __int128 b) {
  __int128 quotient = a / b;
  if (quotient * b != a && ((a < 0) != (b < 0))) --quotient;
  return quotient;
}

Value name_of(Name name, const Scope& s, std::int64_t row, std::int64_t col) {
  switch (name) {
    case Name::q:
      return {wrap(static_cast<__int128>(row) + s.q_start), 0};
    case Name::k:
      return {wrap(static_cast<__int128>(col) + s.k_start), 0};
    case Name::row:
      return {row, 0};
    case Name::col:
      return {col, 0};
    case Name::b:
      return {s.b, 0};
    case Name::h:
      return {s.h, 0};
    case Name::h_kv:
      return {s.h_kv, 0};
    case Name::s_q:
      return {s.s_q, 0};
    case Name::s_kv:
      return {s.s_kv, 0};
    case Name::token_q:
      return {wrap(static_cast<__int128>(row) + s.token_q_start), 0};
    case Name::token_k:
      return {wrap(static_cast<__int128>(col) + s.token_k_start), 0};
    case Name::s:
      break;
  }
  return {};
}

Value real_op(Op op, float a, float b) {
  switch (op) {
    case Op::negate:
      return {0, -a};
    case Op::add:
      return {0, a + b};
    case Op::subtract:
      return {0, a - b};
    case Op::multiply:
      return {0, a * b};
    case Op::divide:
      return {0, a / b};
    case Op::floor_divide:
      return {0, std::floor(a / b)};
    case Op::modulo: {
      const float floored = std::floor(a / b);
      const float product = b * floored;
      return {0, a - product};
    }
    case Op::absolute:
      return {0, std::fabs(a)};
    case Op::floor:
      return {0, std::floor(a)};
    case Op::minimum:
      return {0, std::isnan(a) ? a : std::isnan(b) ? b : a < b ? a : b};
    case Op::maximum:
      return {0, std::isnan(a) ? a : std::isnan(b) ? b : a > b ? a : b};
    default:
      return {};
  }
}

Value integer_op(Op op, std::int64_t a, std::int64_t b) {
  const __int128 x = a;
  const __int128 y = b;
  switch (op) {
    case Op::negate:
      return {wrap(-x), 0};
    case Op::add:
      return {wrap(x + y), 0};
    case Op::subtract:
      return {wrap(x - y), 0};
    case Op::multiply:
      return {wrap(x * y), 0};
    case Op::floor_divide:
      return {b == 0 ? 0 : wrap(floor_div(x, y)), 0};
    case Op::modulo:
      return {b == 0 ? 0 : wrap(x - y * floor_div(x, y)), 0};
    case Op::absolute:
      return {wrap(x < 0 ? -x : x), 0};
    case Op::minimum:
      return {a < b ? a : b, 0};
    case Op::maximum:
      return {a > b ? a : b, 0};
    default:
      return {};
  }
}

template <class T>
bool compare(Op op, T a, T b) {
  return op == Op::less ? a < b : op == Op::less_equal ? a <= b : op == Op::equal ? a == b : a != b;
}

const char* spelling(Op op) {
  switch (op) {
    case Op::add:
      return "+";
    case Op::subtract:
      return "-";
    case Op::multiply:
      return "*";
    case Op::divide:
      return "/";
    case Op::floor_divide:
      return "//";
    case Op::modulo:
      return "%";
    case Op::logical_and:
      return "&";
    case Op::logical_or:
      return "|";
    case Op::less:
      return "<";
    case Op::less_equal:
      return "<=";
    case Op::equal:
      return "==";
    case Op::not_equal:
      return "!=";
    case Op::negate:
      return "-";
    case Op::logical_not:
      return "!";
    case Op::absolute:
      return "abs";
    case Op::minimum:
      return "min";
    case Op::maximum:
      return "max";
    case Op::floor:
      return "floor";
    case Op::to_real:
      return "real";
    default:
      return "?";
  }
}

std::string text_of(const Program& program, int i) {
  static const char* const names[] = {"q",    "k",   "row",  "col",     "b",       "h",
                                      "h_kv", "s_q", "s_kv", "token_q", "token_k", "s"};
  const Node& node = program.nodes[i];
  const auto operand = [&](int j) { return text_of(program, node.operand[j]); };
  switch (node.op) {
    case Op::constant:
      if (node.type == Type::boolean) return node.integer ? "true" : "false";
      return node.type == Type::real ? std::to_string(node.real) : std::to_string(node.integer);
    case Op::parameter: {
      const Parameter& parameter = program.parameters[node.slot];
      return node.type == Type::real ? std::to_string(parameter.real)
                                     : std::to_string(parameter.integer);
    }
    case Op::name:
      return names[static_cast<int>(node.name)];
    case Op::load: {
      std::string text = program.arrays[node.slot].name + "[";
      for (int j = 0; j < node.operands; ++j) text += (j > 0 ? ", " : "") + operand(j);
      return text + "]";
    }
    case Op::select:
      return "(" + operand(0) + " ? " + operand(1) + " : " + operand(2) + ")";
    case Op::minimum:
    case Op::maximum:
      return std::string(spelling(node.op)) + "(" + operand(0) + ", " + operand(1) + ")";
    default:
      break;
  }
  if (node.operands == 1) return std::string(spelling(node.op)) + "(" + operand(0) + ")";
  return "(" + operand(0) + " " + spelling(node.op) + " " + operand(1) + ")";
}

bool same(const Node& a, const Node& b) {
  return a.op == b.op && a.type == b.type && a.operands == b.operands && a.name == b.name &&
         a.slot == b.slot && a.operand == b.operand && a.integer == b.integer &&
         std::bit_cast<std::uint64_t>(a.real) == std::bit_cast<std::uint64_t>(b.real);
}

}  // namespace

int ProgramBuilder::add(Node node) {
  for (int i = 0; i < node.operands; ++i) {
    node.varies |= program_.nodes[node.operand[i]].varies;
  }
  for (std::size_t i = 0; i < program_.nodes.size(); ++i) {
    if (same(program_.nodes[i], node)) return static_cast<int>(i);
  }
  program_.nodes.push_back(node);
  return static_cast<int>(program_.nodes.size()) - 1;
}

int ProgramBuilder::truth(bool value) {
  Node node;
  node.integer = value;
  return add(node);
}

int ProgramBuilder::integer(std::int64_t value) {
  Node node;
  node.type = Type::integer;
  node.integer = value;
  return add(node);
}

int ProgramBuilder::real(double value) {
  Node node;
  node.type = Type::real;
  node.real = value;
  return add(node);
}

int ProgramBuilder::parameter(std::int64_t value) {
  program_.parameters.push_back({"", Type::integer, value, 0.0});
  Node node;
  node.op = Op::parameter;
  node.type = Type::integer;
  node.slot = static_cast<int>(program_.parameters.size()) - 1;
  return add(node);
}

int ProgramBuilder::real_parameter(double value) {
  program_.parameters.push_back({"", Type::real, 0, value});
  Node node;
  node.op = Op::parameter;
  node.type = Type::real;
  node.slot = static_cast<int>(program_.parameters.size()) - 1;
  return add(node);
}

int ProgramBuilder::flag(bool value) {
  program_.parameters.push_back({"", Type::boolean, value, 0.0});
  Node node;
  node.op = Op::parameter;
  node.slot = static_cast<int>(program_.parameters.size()) - 1;
  return add(node);
}

int ProgramBuilder::name(Name name) {
  Node node;
  node.op = Op::name;
  node.type = Type::integer;
  node.name = name;
  if (name == Name::q || name == Name::row || name == Name::token_q) node.varies = varies_query;
  if (name == Name::k || name == Name::col || name == Name::token_k) node.varies = varies_key;
  if (name == Name::b || name == Name::s_q || name == Name::s_kv) node.varies = varies_batch;
  if (name == Name::h || name == Name::h_kv) node.varies = varies_head;
  return add(node);
}

int ProgramBuilder::array(const std::string& name, const TensorView& view) {
  program_.arrays.push_back({name, view});
  return static_cast<int>(program_.arrays.size()) - 1;
}

int ProgramBuilder::load(int array, const std::vector<int>& index) {
  const TensorView& view = program_.arrays[array].view;
  Node node;
  node.op = Op::load;
  node.slot = array;
  node.type = is_float(view.dtype)           ? Type::real
              : view.dtype == DType::boolean ? Type::boolean
                                             : Type::integer;
  for (const int i : index) node.operand[node.operands++] = i;
  return add(node);
}

int ProgramBuilder::load(int array, std::initializer_list<int> index) {
  return load(array, std::vector<int>(index));
}

int ProgramBuilder::unary(Op op, int a) {
  Node node;
  node.op = op;
  node.type = op == Op::to_real ? Type::real : type(a);
  node.operands = 1;
  node.operand[0] = a;
  return add(node);
}

int ProgramBuilder::binary(Op op, int a, int b) {
  Node node;
  node.op = op;
  const bool compares =
      op == Op::less || op == Op::less_equal || op == Op::equal || op == Op::not_equal;
  node.type = compares ? Type::boolean : type(a);
  node.operands = 2;
  node.operand = {a, b, 0, 0};
  return add(node);
}

int ProgramBuilder::select(int condition, int a, int b) {
  Node node;
  node.op = Op::select;
  node.type = type(a);
  node.operands = 3;
  node.operand = {condition, a, b, 0};
  return add(node);
}

Program ProgramBuilder::finish(int root) const {
  std::vector<int> place(program_.nodes.size(), -1);
  std::vector<bool> needed(program_.nodes.size());
  needed[root] = true;
  for (int i = root; i >= 0; --i) {
    if (!needed[i]) continue;
    const Node& node = program_.nodes[i];
    for (int j = 0; j < node.operands; ++j) needed[node.operand[j]] = true;
  }
  Program result = program_;
  result.nodes.clear();
  for (int i = 0; i <= root; ++i) {
    if (!needed[i]) continue;
    Node node = program_.nodes[i];
    for (int j = 0; j < node.operands; ++j) node.operand[j] = place[node.operand[j]];
    place[i] = static_cast<int>(result.nodes.size());
    result.nodes.push_back(node);
  }
  result.root = place[root];
  return result;
}

std::string describe(const Program& program) {
  std::string text = program.nodes.size() < 200 ? text_of(program, program.root) : "(long)";
  for (const Array& array : program.arrays) {
    text += " " + array.name + "=" + array.view.describe();
  }
  return text;
}

std::string describe(const Scope& s) {
  return "b=" + std::to_string(s.b) + " h=" + std::to_string(s.h) + " s=" + std::to_string(s.s_q) +
         "/" + std::to_string(s.s_kv) + " q_start=" + std::to_string(s.q_start) +
         " k_start=" + std::to_string(s.k_start) +
         " token_start=" + std::to_string(s.token_q_start) + "/" + std::to_string(s.token_k_start);
}

bool visible(const Program& mask, const Scope& scope, std::int64_t row, std::int64_t col,
             bool* integers_fit) {
  thread_local std::vector<Value> values;
  values.resize(mask.nodes.size());
  for (std::size_t i = 0; i < mask.nodes.size(); ++i) {
    const Node& node = mask.nodes[i];
    const Value a = node.operands > 0 ? values[node.operand[0]] : Value{};
    const Value b = node.operands > 1 ? values[node.operand[1]] : Value{};
    const Type operand_type = node.operands > 0 ? mask.nodes[node.operand[0]].type : Type::boolean;
    Value& out = values[i];
    switch (node.op) {
      case Op::constant:
        out = {node.integer, static_cast<float>(node.real)};
        break;
      case Op::parameter:
        out = {mask.parameters[node.slot].integer,
               static_cast<float>(mask.parameters[node.slot].real)};
        break;
      case Op::name:
        out = name_of(node.name, scope, row, col);
        break;
      case Op::load: {
        std::int64_t index[4] = {};
        for (int j = 0; j < node.operands; ++j) index[j] = values[node.operand[j]].i;
        out = load(mask.arrays[node.slot].view, index);
        break;
      }
      case Op::to_real:
        out = {0, static_cast<float>(a.i)};
        break;
      case Op::logical_not:
        out = {a.i == 0, 0};
        break;
      case Op::logical_and:
        out = {a.i != 0 && b.i != 0, 0};
        break;
      case Op::logical_or:
        out = {a.i != 0 || b.i != 0, 0};
        break;
      case Op::less:
      case Op::less_equal:
      case Op::equal:
      case Op::not_equal:
        out = {operand_type == Type::real ? compare(node.op, a.f, b.f) : compare(node.op, a.i, b.i),
               0};
        break;
      case Op::select:
        out = a.i != 0 ? b : values[node.operand[2]];
        break;
      default:
        out = node.type == Type::real ? real_op(node.op, a.f, b.f) : integer_op(node.op, a.i, b.i);
    }
    if (integers_fit != nullptr && node.type == Type::integer &&
        (out.i < std::numeric_limits<std::int32_t>::min() ||
         out.i > std::numeric_limits<std::int32_t>::max())) {
      *integers_fit = false;
    }
  }
  return values[mask.root].i != 0;
}

VisibleCounts::VisibleCounts(const Program& mask, const Scope& scope)
    : cols_(scope.s_kv), below_((scope.s_q + 1) * (scope.s_kv + 1)) {
  for (std::int64_t row = 0; row < scope.s_q; ++row) {
    std::int64_t line = 0;
    for (std::int64_t col = 0; col < scope.s_kv; ++col) {
      line += visible(mask, scope, row, col, &integers_fit_);
      below_[(row + 1) * (cols_ + 1) + col + 1] = below_[row * (cols_ + 1) + col + 1] + line;
    }
  }
}

std::int64_t VisibleCounts::count(std::int64_t row_begin, std::int64_t row_end,
                                  std::int64_t col_begin, std::int64_t col_end) const {
  const auto at = [&](std::int64_t row, std::int64_t col) {
    return below_[row * (cols_ + 1) + col];
  };
  return at(row_end, col_end) - at(row_begin, col_end) - at(row_end, col_begin) +
         at(row_begin, col_begin);
}

}  // namespace onepass::lang::testing
