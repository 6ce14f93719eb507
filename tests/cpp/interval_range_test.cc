// Every operator on ranges of chosen values: the result holds what the operator gives for each of
// them, and is no wider than it must be where the operator is monotone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "lang/range.h"
#include "program_oracle.h"

namespace onepass::lang {
namespace {

using intervals::Range;

constexpr Op integer_ops[] = {Op::negate,   Op::add,          Op::subtract,
                              Op::multiply, Op::floor_divide, Op::modulo,
                              Op::absolute, Op::minimum,      Op::maximum};
constexpr Op real_ops[] = {Op::negate,  Op::add,     Op::subtract,     Op::multiply,
                           Op::divide,  Op::modulo,  Op::floor_divide, Op::absolute,
                           Op::minimum, Op::maximum, Op::floor};
constexpr Op comparisons[] = {Op::less, Op::less_equal, Op::equal, Op::not_equal};

int operands_of(Op op) {
  return op == Op::negate || op == Op::absolute || op == Op::floor || op == Op::to_real ? 1 : 2;
}

/// The operator on two parameters.
Program program_of(Op op, Type type, Type operand_type) {
  Program program;
  for (int i = 0; i < 2; ++i) {
    Node leaf;
    leaf.op = Op::parameter;
    leaf.type = operand_type;
    leaf.slot = i;
    program.nodes.push_back(leaf);
    program.parameters.push_back({});
  }
  Node node;
  node.op = op;
  node.type = type;
  node.operands = static_cast<std::uint8_t>(operands_of(op));
  node.operand = {0, 1, 0, 0};
  program.nodes.push_back(node);
  program.root = 2;
  return program;
}

OracleValue value_of(Program& program, const OracleValue& a, const OracleValue& b) {
  program.parameters[0].integer = a.integer;
  program.parameters[0].real = a.real;
  program.parameters[1].integer = b.integer;
  program.parameters[1].real = b.real;
  return Oracle<float>(program, Scope{}).at(0, 0);
}

bool holds(Type type, const Range& range, const OracleValue& value) {
  if (type != Type::real) {
    return range.integer.lo <= value.integer && value.integer <= range.integer.hi;
  }
  if (std::isnan(value.real)) return range.real.nan;
  return range.real.lo <= value.real && value.real <= range.real.hi;
}

Range range_of(Type type, const std::vector<OracleValue>& values) {
  Range range = intervals::nothing(type);
  for (const OracleValue& value : values) {
    const intervals::Value exact = type == Type::real
                                       ? intervals::Value{.real = static_cast<float>(value.real)}
                                       : intervals::Value{.integer = value.integer};
    range = intervals::hull(type, range, intervals::only(type, exact));
  }
  return range;
}

class IntervalRange : public testing::Test {
 protected:
  std::vector<OracleValue> some(Type type) {
    using Int = std::numeric_limits<std::int64_t>;
    const std::int64_t whole[] = {0,
                                  1,
                                  -1,
                                  2,
                                  -2,
                                  3,
                                  -7,
                                  64,
                                  Int::max(),
                                  Int::min(),
                                  Int::max() - 1,
                                  Int::min() + 1,
                                  3000000000,
                                  16777217};
    const float real[] = {0.0f,   -0.0f,  1.0f,    -1.0f,     0.1f,       -2.5f, 3.4e38f,
                          -3e38f, 1e-45f, -1e-40f, HUGE_VALF, -HUGE_VALF, 7.0f,  std::nanf("")};
    std::vector<OracleValue> values(1 + random_() % 3);
    for (OracleValue& value : values) {
      const auto pick = random_() % 20;
      const auto any = static_cast<std::int64_t>(random_() % 41) - 20;
      value.integer = pick < 14 ? whole[pick] : any;
      value.real = pick < 14 ? real[pick] : static_cast<float>(any) / 8.0f;
      if (type != Type::real) value.real = 0;
    }
    return values;
  }

  void check(Op op, Type type, Type operand_type) {
    Program program = program_of(op, type, operand_type);
    for (int trial = 0; trial < 3000 && !HasFailure(); ++trial) {
      const std::vector<OracleValue> a = some(operand_type);
      const std::vector<OracleValue> b = some(operand_type);
      const Range operand[] = {range_of(operand_type, a), range_of(operand_type, b)};
      const Range result = intervals::apply(op, type, operand_type, operand);
      for (const OracleValue& x : a) {
        for (const OracleValue& y : b) {
          const OracleValue value = value_of(program, x, y);
          EXPECT_TRUE(holds(type, result, value))
              << "op " << static_cast<int>(op) << " of " << x.integer << " " << x.real << " and "
              << y.integer << " " << y.real << " is " << value.integer << " " << value.real;
        }
      }
    }
  }

  std::mt19937_64 random_{4};
};

TEST_F(IntervalRange, HoldsEveryInteger) {
  for (const Op op : integer_ops) check(op, Type::integer, Type::integer);
  for (const Op op : comparisons) check(op, Type::boolean, Type::integer);
}

TEST_F(IntervalRange, HoldsEveryReal) {
  for (const Op op : real_ops) check(op, Type::real, Type::real);
  for (const Op op : comparisons) check(op, Type::boolean, Type::real);
  check(Op::to_real, Type::real, Type::integer);
}

TEST_F(IntervalRange, IsAsNarrowAsItCanBe) {
  const auto whole = [](Op op, std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
    const Range operand[] = {intervals::integers(a, b), intervals::integers(c, d)};
    const intervals::IntegerRange r =
        intervals::apply(op, Type::integer, Type::integer, operand).integer;
    return std::pair(r.lo, r.hi);
  };
  EXPECT_EQ(whole(Op::floor_divide, -9, 130, 64, 64), std::pair(std::int64_t{-1}, std::int64_t{2}));
  EXPECT_EQ(whole(Op::floor_divide, 10, 20, -3, 4), std::pair(std::int64_t{-20}, std::int64_t{20}));
  EXPECT_EQ(whole(Op::modulo, 70, 90, 64, 64), std::pair(std::int64_t{6}, std::int64_t{26}));
  EXPECT_EQ(whole(Op::modulo, 60, 70, 64, 64), std::pair(std::int64_t{0}, std::int64_t{63}));
  EXPECT_EQ(whole(Op::modulo, 0, 5, 1, 64), std::pair(std::int64_t{0}, std::int64_t{5}));
  EXPECT_EQ(whole(Op::multiply, -3, 2, -5, 4), std::pair(std::int64_t{-12}, std::int64_t{15}));
  EXPECT_EQ(whole(Op::absolute, -3, 2, 0, 0), std::pair(std::int64_t{0}, std::int64_t{3}));

  // Ends are rounded as the operator rounds: 0.1f + 0.2f, not a neighbour.
  const Range operand[] = {intervals::reals(0.1f, 0.5f, false),
                           intervals::reals(0.2f, 1.0f, false)};
  const intervals::RealRange sum = intervals::apply(Op::add, Type::real, Type::real, operand).real;
  EXPECT_EQ(sum.lo, 0.1f + 0.2f);
  EXPECT_EQ(sum.hi, 1.5f);
  EXPECT_FALSE(sum.nan);
}

}  // namespace
}  // namespace onepass::lang
