// The mask and score language, read a second time: one tree, evaluated at one pair at a time.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace onepass::reference {

enum class Type : std::uint8_t { boolean, integer, real };

/// A bool (0 or 1) and an int live in `integer`, a float in `real`.
struct Value {
  Type type = Type::integer;
  std::int64_t integer = 0;
  double real = 0.0;
};

/// A named array of 0 to 4 dims in row-major order; `integers` also holds bools.
struct Array {
  std::vector<std::int64_t> shape;
  Type type = Type::real;
  std::vector<std::int64_t> integers;
  std::vector<double> reals;
};

struct Argument {
  std::string name;
  std::variant<bool, std::int64_t, double, Array> value;
};

/// What an expression sees of one (query, key) pair.
struct Pair {
  std::int64_t q = 0, k = 0, row = 0, col = 0;
  std::int64_t b = 0, h = 0, h_kv = 0;
  std::int64_t s_q = 0, s_kv = 0;
  std::int64_t token_q = 0, token_k = 0;
  double s = 0.0;  // the scaled logit
};

enum class Kind : std::uint8_t { mask, score };

enum class Op : std::uint8_t {
  number,
  name,   // field of Pair: `field`, or s
  array,  // children are the indices
  negate,
  logical_not,
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  less,
  less_equal,
  greater,
  greater_equal,
  equal,
  not_equal,
  logical_and,
  logical_or,
  select,
  absolute,
  minimum,
  maximum,
  floor,
  square_root,
  exponential,
  logarithm,
  hyperbolic_tangent
};

struct Tree {
  Op op = Op::number;
  std::vector<Tree> children;
  Value value;                          // Op::number
  std::int64_t Pair::*field = nullptr;  // Op::name; null means s
  const Array* array = nullptr;         // Op::array
  bool literal_zero = false;            // written as 0: an error where it is a divisor
};

/// Text -> tree with every definition expanded. The tree points into `arguments`.
/// Throws std::invalid_argument. (reference/parse.cc)
Tree parse(std::string_view text, Kind kind, const std::vector<Argument>& arguments,
           std::string_view definitions);

/// What a score is differentiated by: an element of a float array, or the logit when `array` is
/// null.
struct Variable {
  const Array* array = nullptr;
  std::size_t element = 0;
  friend auto operator<=>(const Variable&, const Variable&) = default;
};

/// d value / d variable for every variable that moves the value.
using Tangent = std::map<Variable, double>;

/// One expression with its arguments. Masks compute in float32, scores in float64.
class Expression {
 public:
  /// Throws std::invalid_argument when the text has no meaning or not the type its kind asks for.
  Expression(std::string_view text, Kind kind, std::vector<Argument> arguments,
             std::string_view definitions = {});
  Expression(const Expression&) = delete;
  Expression& operator=(const Expression&) = delete;

  bool visible(const Pair& pair) const { return evaluate(tree_, pair).integer != 0; }
  double score(const Pair& pair) const { return as_real(evaluate(tree_, pair)).real; }
  Tangent score_tangent(const Pair& pair) const { return tangent(tree_, pair); }
  const std::vector<Argument>& arguments() const { return arguments_; }

 private:
  Value evaluate(const Tree& tree, const Pair& pair) const;
  Value load(const Tree& tree, const Pair& pair) const;
  /// The element that an array node reads; none = outside.
  std::optional<std::size_t> element(const Tree& tree, const Pair& pair) const;
  Tangent tangent(const Tree& tree, const Pair& pair) const;  // (reference/tangent.cc)
  Value arithmetic(Op op, const Value& a, const Value& b) const;
  Value compare(Op op, Value a, Value b) const;
  Value function(Op op, const Value& a) const;
  Value real(double x) const;  // rounded to float32 in a mask
  Value as_real(const Value& value) const;

  Kind kind_;
  std::vector<Argument> arguments_;
  Tree tree_;
};

}  // namespace onepass::reference
