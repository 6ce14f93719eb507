// The value of one operation on known operands, exactly as every reader computes it.
#pragma once

#include <span>

#include "lang/program.h"

namespace onepass::lang {

/// A known value: `integer` holds bools and ints, `real` holds floats.
struct Value {
  Type type = Type::boolean;
  std::int64_t integer = 0;
  double real = 0.0;
};

/// Masks round every float operation to float32; scores are folded in float64.
double rounded(Kind kind, double value);

/// Applies `op` (not name, load, constant or parameter) to operands whose types fit it.
Value apply(Kind kind, Op op, std::span<const Value> operands);

}  // namespace onepass::lang
