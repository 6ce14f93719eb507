// Makes the nodes of a program: equal subterms share a node, and what can be known is folded.
#pragma once

#include <array>
#include <map>
#include <tuple>
#include <vector>

#include "lang/program.h"

namespace onepass::lang {

/// Operand types are the caller's business (bind.cc checks them); values and sharing are decided
/// here. Every simplification is exact for every value, NaN and -0 included.
///
/// Literals and number arguments become parameters, and terms of parameters alone become new
/// parameters, so the nodes do not depend on their values; two facts excepted: a literal divisor of
/// // and % is a constant, and a parameter's comparison with the constant 0 is decided here.
class Builder {
 public:
  explicit Builder(Kind kind) { program_.kind = kind; }
  /// Continues a finished program; its nodes keep their numbers.
  explicit Builder(const Program& program);

  std::int32_t constant(bool value);
  std::int32_t constant(std::int64_t value);
  std::int32_t constant(double value);
  /// 0 and 1 are constants, every other literal a parameter of its own.
  std::int32_t literal(std::int64_t value);
  std::int32_t literal(double value);
  /// A number argument; the same name gives the same node.
  std::int32_t argument(const Parameter& parameter);
  std::int32_t name(Name name);
  /// The number of an array; the same name gives the same number.
  std::int32_t array(const std::string& name, const TensorView& view);
  std::int32_t load(std::int32_t array, std::span<const std::int32_t> index);

  std::int32_t unary(Op op, std::int32_t a);
  std::int32_t binary(Op op, std::int32_t a, std::int32_t b);
  std::int32_t select(std::int32_t condition, std::int32_t yes, std::int32_t no);
  /// The divisor as the kernel shall see it: a term of literals alone becomes a constant.
  std::int32_t divisor(std::int32_t node);
  std::int32_t as_real(std::int32_t node);

  const Node& at(std::int32_t node) const { return program_.nodes[static_cast<std::size_t>(node)]; }
  Type type(std::int32_t node) const { return at(node).type; }
  const Parameter& parameter_at(std::int32_t node) const {
    return program_.parameters[static_cast<std::size_t>(at(node).slot)];
  }
  bool is_zero(std::int32_t node) const;
  bool is_one(std::int32_t node) const;
  std::int32_t size() const { return static_cast<std::int32_t>(program_.nodes.size()); }
  Kind kind() const { return program_.kind; }

  /// The program of `root` alone: nodes, parameters and arrays that it does not need are gone.
  Program finish(std::int32_t root) const;

 private:
  using Key = std::tuple<Op, Type, std::int32_t, std::array<std::int32_t, 4>, std::uint64_t>;

  static Key key_of(const Node& node);
  std::int32_t add(const Node& node);
  std::int32_t fold(const Node& node);
  std::int32_t simplify(const Node& node);
  std::int32_t simplify_logic(const Node& node);
  std::int32_t simplify_select(const Node& node);
  std::int32_t decide_sign(const Node& node);
  std::int32_t make(Node node);
  std::int32_t parameter(const Parameter& parameter, bool literal);
  bool is_true(std::int32_t node) const;
  bool is_false(std::int32_t node) const;
  bool is_value(std::int32_t node) const;

  Program program_;
  std::vector<bool> literal_;  // per parameter: made of literals alone
  std::map<Key, std::int32_t> made_;
};

}  // namespace onepass::lang
