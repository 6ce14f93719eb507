// Integer subterms of the form row_factor * row + col_factor * col + constant.
#pragma once

#include <cstdint>

#include "lang/program.h"
#include "lang/range.h"
#include "lang/zone.h"

namespace onepass::lang::intervals {

/// Holds only where no step of it wraps inside the scope; then every value is below `bound`.
struct Affine {
  static constexpr std::int64_t bound = std::int64_t{1} << 61;

  std::int64_t row, col, constant;
  bool known;
};

Affine affine_constant(std::int64_t value, const Zone& domain);
Affine affine_name(Name name, const Scope& scope, const Zone& domain);
/// For the operators negate, add, subtract and multiply; else unknown.
Affine affine_apply(Op op, const Affine& a, const Affine& b, const Zone& domain);
Affine affine_difference(const Affine& a, const Affine& b);

/// Exact over the zone, which must be tight.
IntegerRange affine_range(const Affine& affine, const Zone& zone);

}  // namespace onepass::lang::intervals
