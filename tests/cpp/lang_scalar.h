// One pair at a time, in the test's own terms: the value of a program, and random expressions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "lang/fold.h"
#include "lang/program.h"
#include "reference/expression.h"

namespace onepass::lang {

/// Arrays of one test, as the library and as the reference see them.
struct Data {
  std::vector<std::int64_t> ints;
  std::vector<double> reals;
  std::vector<std::uint8_t> bools;
  std::vector<Argument> arguments;

  explicit Data(std::mt19937& random) : ints(12), reals(2 * 3 * 4), bools(12) {
    for (auto& x : ints) x = static_cast<std::int64_t>(random() % 7) - 2;
    for (auto& x : reals) x = static_cast<double>(static_cast<int>(random() % 64) - 32) / 16;
    for (auto& x : bools) x = random() % 2;
    arguments = {{"ids", TensorView(ints.data(), DType::int64, {2, 6})},
                 {"table", TensorView(ints.data(), DType::int64, {12})},
                 {"f", TensorView(reals.data(), {2, 3, 4})},
                 {"slopes", TensorView(reals.data(), {3})},
                 {"seen", TensorView(bools.data(), DType::boolean, {3, 4})},
                 {"w", std::int64_t{3}},
                 {"t", 0.75},
                 {"flag", true}};
  }

  std::vector<reference::Argument> for_reference() const {
    using reference::Array;
    const std::vector<std::int64_t> flags(bools.begin(), bools.end());
    const std::vector<double> slopes(reals.begin(), reals.begin() + 3);
    return {{"ids", Array{{2, 6}, reference::Type::integer, ints, {}}},
            {"table", Array{{12}, reference::Type::integer, ints, {}}},
            {"f", Array{{2, 3, 4}, reference::Type::real, {}, reals}},
            {"slopes", Array{{3}, reference::Type::real, {}, slopes}},
            {"seen", Array{{3, 4}, reference::Type::boolean, flags, {}}},
            {"w", std::int64_t{3}},
            {"t", 0.75},
            {"flag", true}};
  }
};

inline std::int64_t name_value(Name name, const reference::Pair& pair) {
  switch (name) {
    case Name::q:
      return pair.q;
    case Name::k:
      return pair.k;
    case Name::row:
      return pair.row;
    case Name::col:
      return pair.col;
    case Name::b:
      return pair.b;
    case Name::h:
      return pair.h;
    case Name::h_kv:
      return pair.h_kv;
    case Name::s_q:
      return pair.s_q;
    case Name::s_kv:
      return pair.s_kv;
    case Name::token_q:
      return pair.token_q;
    default:
      return pair.token_k;
  }
}

inline Value load_value(Kind kind, const Array& array, const std::vector<Value>& index, Type type) {
  std::int64_t at = 0;
  for (std::size_t dim = 0; dim < index.size(); ++dim) {
    const std::int64_t size = array.view.shape[dim];
    const std::int64_t place = size == 1 ? 0 : index[dim].integer;
    if (place < 0 || place >= size) return {type, 0, 0.0};
    at += place * array.view.strides[dim];
  }
  switch (array.view.dtype) {
    case DType::int64:
      return {type, static_cast<const std::int64_t*>(array.view.data)[at], 0.0};
    case DType::float64:
      return {type, 0, rounded(kind, static_cast<const double*>(array.view.data)[at])};
    default:
      return {type, static_cast<const std::uint8_t*>(array.view.data)[at], 0.0};
  }
}

/// Value of every node; `shifted` (if any) is a node whose value gets `shift` added.
inline std::vector<Value> values(const Program& program, const reference::Pair& pair,
                                 std::int32_t shifted = -1, double shift = 0.0) {
  std::vector<Value> out;
  for (std::size_t i = 0; i < program.nodes.size(); ++i) {
    const Node& node = program.nodes[i];
    std::vector<Value> operands;
    for (std::size_t j = 0; j < node.operands; ++j) {
      operands.push_back(out[static_cast<std::size_t>(node.operand[j])]);
    }
    Value value{node.type, node.integer, node.real};
    if (node.op == Op::parameter) {
      const Parameter& held = program.parameters[static_cast<std::size_t>(node.slot)];
      value = {held.type, held.integer, held.real};
    } else if (node.op == Op::name) {
      if (node.name == Name::s) value.real = pair.s;
      if (node.name != Name::s) value.integer = name_value(node.name, pair);
    } else if (node.op == Op::load) {
      value = load_value(program.kind, program.arrays[static_cast<std::size_t>(node.slot)],
                         operands, node.type);
    } else if (node.op != Op::constant) {
      value = apply(program.kind, node.op, operands);
    }
    if (static_cast<std::int32_t>(i) == shifted) value.real += shift;
    out.push_back(value);
  }
  return out;
}

inline Value value(const Program& program, const reference::Pair& pair) {
  return values(program, pair)[static_cast<std::size_t>(program.root)];
}

inline reference::Pair random_pair(std::mt19937& random) {
  const auto below = [&](std::uint32_t n) { return static_cast<std::int64_t>(random() % n); };
  reference::Pair pair;
  pair.row = below(6), pair.col = below(6);
  pair.q = pair.row + below(3) - 1, pair.k = pair.col;
  pair.b = below(2), pair.h = below(3), pair.h_kv = below(2);
  pair.s_q = 6, pair.s_kv = 6;
  pair.token_q = pair.row + 6 * pair.b, pair.token_k = pair.col + 6 * pair.b;
  pair.s = static_cast<double>(below(4001) - 2000) / 731.0;
  return pair;
}

/// Random well-typed expressions over the names of Data.
class RandomText {
 public:
  RandomText(std::mt19937& random, Kind kind) : random_(random), score_(kind == Kind::score) {}

  std::string boolean(int depth) {
    switch (depth <= 0 ? below(4) : below(12)) {
      case 0:
        return "true";
      case 1:
        return "causal";
      case 2:
        return "seen[h, col]";
      case 3:
        return "flag";
      case 4:
        return "(" + boolean(depth - 1) + " & " + boolean(depth - 1) + ")";
      case 5:
        return "(" + boolean(depth - 1) + " | " + boolean(depth - 1) + ")";
      case 6:
        return "!" + boolean(depth - 1);
      case 7:
        return "(" + integer(depth - 1) + sign() + integer(depth - 1) + ")";
      case 8:
        return "(" + real(depth - 1) + sign() + real(depth - 1) + ")";
      case 9:
        return "(" + integer(depth - 1) + sign() + integer(depth - 1) + sign() + real(depth - 1) +
               ")";
      case 10:
        return "(" + boolean(depth - 1) + " == " + boolean(depth - 1) + ")";
      default:
        return choice(boolean(depth - 1), boolean(depth - 1), depth);
    }
  }

  std::string integer(int depth) {
    static const char* const names[] = {"q",    "k", "row",  "col",     "b",      "h",
                                        "h_kv", "w", "s_kv", "token_q", "token_k"};
    switch (depth <= 0 ? below(4) : below(14)) {
      case 0:
        return std::to_string(below(8));
      case 1:
      case 2:
        return names[below(11)];
      case 3:
        return "ids[b, k]";
      case 4:
        return "table[" + integer(depth - 1) + "]";
      case 5:
        return "-" + integer(depth - 1);
      case 6:
        return "abs(" + integer(depth - 1) + ")";
      case 7:
        return "min(" + integer(depth - 1) + ", " + integer(depth - 1) + ")";
      case 8:
        return "max(" + integer(depth - 1) + ", " + integer(depth - 1) + ")";
      case 9:
        return choice(integer(depth - 1), integer(depth - 1), depth);
      case 10:
        return "(" + integer(depth - 1) + " // " + std::to_string(1 + below(5)) + ")";
      case 11:
        return "(" + integer(depth - 1) + " % (" + integer(depth - 1) + " + 0))";
      default:
        return "(" + integer(depth - 1) + arithmetic() + integer(depth - 1) + ")";
    }
  }

  std::string real(int depth) {
    switch (depth <= 0 ? below(5) : below(15)) {
      case 0:
        return std::to_string(below(40)) + "." + std::to_string(below(100));
      case 1:
        return "t";
      case 2:
        return "slopes[h]";
      case 3:
        return "f[b, h, k]";
      case 4:
        return score_ ? "s" : "(q * 0.25)";
      case 5:
        return "-" + real(depth - 1);
      case 6:
        return "abs(" + real(depth - 1) + ")";
      case 7:
        return "min(" + real(depth - 1) + ", " + number(depth - 1) + ")";
      case 8:
        return "max(" + number(depth - 1) + ", " + real(depth - 1) + ")";
      case 9:
        return choice(real(depth - 1), number(depth - 1), depth);
      case 10:
        return "(" + number(depth - 1) + " / (" + number(depth - 1) + " + 0))";
      case 11:
        return "floor(" + number(depth - 1) + ")";
      case 12:
        return smooth(depth);
      default:
        return "(" + real(depth - 1) + arithmetic() + number(depth - 1) + ")";
    }
  }

 private:
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
  std::string number(int depth) { return below(3) == 0 ? integer(depth) : real(depth); }
  std::string arithmetic() {
    static const char* const signs[] = {" + ", " - ", " * "};
    return signs[below(3)];
  }
  std::string sign() {
    static const char* const signs[] = {" < ", " <= ", " > ", " >= ", " == ", " != "};
    return signs[below(6)];
  }
  std::string choice(const std::string& yes, const std::string& no, int depth) {
    const std::string condition = boolean(depth - 1);
    if (below(2) == 0) return "where(" + condition + ", " + yes + ", " + no + ")";
    return "(" + condition + " ? " + yes + " : " + no + ")";
  }
  std::string smooth(int depth) {
    static const char* const functions[] = {"tanh", "exp", "log", "sqrt"};
    if (!score_) return "(" + real(depth - 1) + " // (" + real(depth - 1) + " + 0.5))";
    return std::string(functions[below(4)]) + "(" + number(depth - 1) + ")";
  }

  std::mt19937& random_;
  bool score_;
};

}  // namespace onepass::lang
