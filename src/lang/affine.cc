#include "lang/affine.h"

#include <algorithm>

namespace onepass::lang::intervals {
namespace {

using Wide = __int128;

bool small(Wide x) { return x > -Affine::bound && x < Affine::bound; }

Affine checked(Wide row, Wide col, Wide constant, const Zone& domain) {
  if (!small(row) || !small(col) || !small(constant)) return {};
  // The rectangle's corner at the origin counts too: it bounds every partial sum.
  const Wide row_end = row * std::max<std::int64_t>(domain.row_hi, 0);
  const Wide col_end = col * std::max<std::int64_t>(domain.col_hi, 0);
  const Wide lo = constant + std::min<Wide>(row_end, 0) + std::min<Wide>(col_end, 0);
  const Wide hi = constant + std::max<Wide>(row_end, 0) + std::max<Wide>(col_end, 0);
  if (!small(lo) || !small(hi)) return {};
  return {static_cast<std::int64_t>(row), static_cast<std::int64_t>(col),
          static_cast<std::int64_t>(constant), true};
}

}  // namespace

Affine affine_constant(std::int64_t value, const Zone& domain) {
  return checked(0, 0, value, domain);
}

Affine affine_name(Name name, const Scope& scope, const Zone& domain) {
  switch (name) {
    case Name::q:
      return checked(1, 0, scope.q_start, domain);
    case Name::k:
      return checked(0, 1, scope.k_start, domain);
    case Name::row:
      return checked(1, 0, 0, domain);
    case Name::col:
      return checked(0, 1, 0, domain);
    case Name::token_q:
      return checked(1, 0, scope.token_q_start, domain);
    case Name::token_k:
      return checked(0, 1, scope.token_k_start, domain);
    case Name::b:
      return checked(0, 0, scope.b, domain);
    case Name::h:
      return checked(0, 0, scope.h, domain);
    case Name::h_kv:
      return checked(0, 0, scope.h_kv, domain);
    case Name::s_q:
      return checked(0, 0, scope.s_q, domain);
    case Name::s_kv:
      return checked(0, 0, scope.s_kv, domain);
    case Name::s:
      break;
  }
  return {};
}

Affine affine_apply(Op op, const Affine& a, const Affine& b, const Zone& domain) {
  if (!a.known || (!b.known && op != Op::negate)) return {};
  switch (op) {
    case Op::negate:
      return checked(-Wide{a.row}, -Wide{a.col}, -Wide{a.constant}, domain);
    case Op::add:
      return checked(Wide{a.row} + b.row, Wide{a.col} + b.col, Wide{a.constant} + b.constant,
                     domain);
    case Op::subtract:
      return checked(Wide{a.row} - b.row, Wide{a.col} - b.col, Wide{a.constant} - b.constant,
                     domain);
    case Op::multiply: {
      const bool left = a.row == 0 && a.col == 0;
      if (!left && (b.row != 0 || b.col != 0)) return {};
      const Wide factor = left ? a.constant : b.constant;
      const Affine& x = left ? b : a;
      return checked(factor * x.row, factor * x.col, factor * x.constant, domain);
    }
    default:
      return {};
  }
}

Affine affine_difference(const Affine& a, const Affine& b) {
  return {a.row - b.row, a.col - b.col, a.constant - b.constant, a.known && b.known};
}

IntegerRange affine_range(const Affine& affine, const Zone& zone) {
  if (affine.row == -affine.col) {
    const std::int64_t lo = affine.col >= 0 ? zone.diff_lo : zone.diff_hi;
    const std::int64_t hi = affine.col >= 0 ? zone.diff_hi : zone.diff_lo;
    return {affine.constant + affine.col * lo, affine.constant + affine.col * hi};
  }
  const bool row_rises = affine.row >= 0;
  const bool col_rises = affine.col >= 0;
  return {affine.constant + affine.row * (row_rises ? zone.row_lo : zone.row_hi) +
              affine.col * (col_rises ? zone.col_lo : zone.col_hi),
          affine.constant + affine.row * (row_rises ? zone.row_hi : zone.row_lo) +
              affine.col * (col_rises ? zone.col_hi : zone.col_lo)};
}

}  // namespace onepass::lang::intervals
