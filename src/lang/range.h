// A range of values that a subterm may take, and what each operator makes of ranges.
#pragma once

#include <cstdint>
#include <limits>

#include "lang/program.h"

namespace onepass::lang::intervals {

/// Closed. Booleans are the integers 0 and 1. Empty when lo > hi.
struct IntegerRange {
  std::int64_t lo, hi;
};

/// Closed, with float32 ends. `nan` = NaN is possible too; lo > hi = nothing else is.
struct RealRange {
  float lo, hi;
  bool nan;
};

/// Which member holds is said by the Type of the node it belongs to.
union Range {
  IntegerRange integer;
  RealRange real;
};

/// The exact value of a node at a pair: masks compute in float32.
union Value {
  std::int64_t integer;
  float real;
};

inline constexpr float infinity = std::numeric_limits<float>::infinity();

inline Range integers(std::int64_t lo, std::int64_t hi) { return {.integer = {lo, hi}}; }
inline Range reals(float lo, float hi, bool nan) { return {.real = {lo, hi, nan}}; }

/// Every value of the type.
Range everything(Type type);
/// No value at all: what `hull` starts from.
Range nothing(Type type);
/// Just this value.
Range only(Type type, Value value);
/// The least range that holds both.
Range hull(Type type, const Range& a, const Range& b);

/// The result of a node with operands, other than a load, on ranges of its operands. Holds every
/// value the node can take (wrapping int64 integers; float32 rounded to nearest, whose operators
/// are monotone, so the ends are computed in float32 themselves). `operand_type` is that of the
/// last operand.
Range apply(Op op, Type type, Type operand_type, const Range* operand);

}  // namespace onepass::lang::intervals
