// The exact values of nodes, several rows or keys at a time.
#pragma once

#include <cstdint>

#include "lang/program.h"
#include "lang/range.h"

namespace onepass::lang::intervals {

/// One operand at each lane: the value of lane i is at[i * step]. Step 0 = the same for all.
struct Lanes {
  const Value* at;
  int step;
};

/// Values of a node, which is no name, from those of its operands.
void apply(const Program& program, const Node& node, const Lanes* operand, int lanes, Value* out);

/// Value of a name; `row` and `col` count for those that change with them.
std::int64_t name_value(Name name, const Scope& scope, std::int64_t row, std::int64_t col);

}  // namespace onepass::lang::intervals
