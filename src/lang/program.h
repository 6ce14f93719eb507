// The compiled form of a mask or score: a topologically ordered list of nodes, every reader's
// input.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "onepass/tensor.h"

namespace onepass::lang {

enum class Type : std::uint8_t { boolean, integer, real };

enum class Kind : std::uint8_t { mask, score };

enum class Op : std::uint8_t {
  constant,   // true, false, 0, 1, inf, divisors of // and %: fixed in the kernel
  parameter,  // another literal or a number argument: a value handed to the kernel
  name,       // a built-in integer name, or `s`
  load,       // array[index...]; out of range reads 0; a dim of size 1 accepts any index
  to_real,    // int -> float
  negate,
  add,
  subtract,
  multiply,
  divide,        // float only
  floor_divide,  // int: divisor 0 gives 0; float: floor(a / b)
  modulo,        // a - b * floor_divide(a, b); int: divisor 0 gives 0
  logical_not,
  logical_and,
  logical_or,
  less,
  less_equal,
  equal,
  not_equal,  // > and >= are stored with their operands exchanged
  select,     // child 0 (bool) ? child 1 : child 2
  absolute,
  minimum,
  maximum,
  floor,
  square_root,
  exponential,
  logarithm,
  hyperbolic_tangent,
};

enum class Name : std::uint8_t { q, k, row, col, b, h, h_kv, s_q, s_kv, token_q, token_k, s };

/// What a node's value changes with, as a bit set.
enum Varies : std::uint8_t {
  varies_query = 1,  // row, q, token_q
  varies_key = 2,    // col, k, token_k
  varies_batch = 4,  // b, s_q, s_kv; and q, k, token_q, token_k, as starts may differ by sequence
  varies_head = 8,   // h, h_kv
  varies_logit = 16  // s
};

struct Node {
  Op op = Op::constant;
  Type type = Type::boolean;
  std::uint8_t varies = 0;                // union over the operands
  std::uint8_t operands = 0;              // how many of `operand` are used
  Name name = Name::q;                    // Op::name
  std::int32_t slot = -1;                 // Op::parameter and Op::load: index in the Program
  std::array<std::int32_t, 4> operand{};  // earlier nodes
  std::int64_t integer = 0;               // Op::constant of type boolean or integer
  double real = 0.0;                      // Op::constant of type real
};

struct Parameter {
  std::string name;  // empty for a literal
  Type type = Type::integer;
  std::int64_t integer = 0;
  double real = 0.0;
};

struct Array {
  std::string name;
  TensorView view;  // 0 to 4 dims
};

/// An array as a named form reads it, as in slopes[h]: what says which shapes make sense.
struct FormRead {
  std::string_view form;  // its definition, of static lifetime
  std::string array;
  int rank = 0;
  std::array<std::int64_t, 4> shape{};
  std::array<Name, 4> index{};  // Name::s where a dim's index is no name alone
};

/// One compiled expression. Equal subterms share a node; operands come before their users; nodes
/// that `root` does not need are gone.
struct Program {
  Kind kind = Kind::mask;
  std::string text;  // as the caller wrote it
  std::vector<Node> nodes;
  std::int32_t root = -1;
  std::vector<Parameter> parameters;
  std::vector<Array> arrays;       // only those the program reads
  std::vector<std::string> named;  // arguments that text or definitions say, read or folded away
  std::vector<FormRead> form_reads;

  const Node& top() const { return nodes[static_cast<std::size_t>(root)]; }
  /// The whole program is the constant `true` (a mask) or is just `s` (a score).
  bool trivial() const;
  /// The text or the definitions it came with say the argument of that name.
  bool names(std::string_view argument) const;
};

/// One (sequence, query head): everything a program sees beyond row and col.
/// q = row + q_start, k = col + k_start, token_q = row + token_q_start, token_k likewise.
struct Scope {
  std::int64_t b = 0, h = 0, h_kv = 0;
  std::int64_t s_q = 0, s_kv = 0;
  std::int64_t q_start = 0, k_start = 0;
  std::int64_t token_q_start = 0, token_k_start = 0;
};

}  // namespace onepass::lang
