// A set of pairs given by bounds on the row, the column and their difference.
#pragma once

#include <algorithm>
#include <cstdint>

namespace onepass::lang::intervals {

/// Pairs with row in [row_lo, row_hi], col in [col_lo, col_hi] and col - row in [diff_lo, diff_hi]:
/// a system of difference bounds. Such a system of whole numbers has a whole-numbered solution
/// unless bounds that form a circle contradict each other. A zone is tight when every bound is
/// attained by one of its pairs.
struct Zone {
  std::int64_t row_lo, row_hi, col_lo, col_hi, diff_lo, diff_hi;

  /// The rectangle of half-open ranges; tight.
  static Zone rectangle(std::int64_t row_begin, std::int64_t row_end, std::int64_t col_begin,
                        std::int64_t col_end) {
    return {row_begin,
            row_end - 1,
            col_begin,
            col_end - 1,
            col_begin - (row_end - 1),
            col_end - 1 - row_begin};
  }

  Zone meet(const Zone& other) const {
    return {std::max(row_lo, other.row_lo),   std::min(row_hi, other.row_hi),
            std::max(col_lo, other.col_lo),   std::min(col_hi, other.col_hi),
            std::max(diff_lo, other.diff_lo), std::min(diff_hi, other.diff_hi)};
  }

  /// Exact for the meet of two tight zones: of the three bounds of a longer circle two come from
  /// one of them, where their sum is a bound too.
  bool empty() const { return row_lo > row_hi || col_lo > col_hi || diff_lo > diff_hi; }

  /// The same pairs with tight bounds; for zones that are not empty.
  Zone tight() const {
    return {std::max(row_lo, col_lo - diff_hi), std::min(row_hi, col_hi - diff_lo),
            std::max(col_lo, row_lo + diff_lo), std::min(col_hi, row_hi + diff_hi),
            std::max(diff_lo, col_lo - row_hi), std::min(diff_hi, col_hi - row_lo)};
  }

  friend bool operator==(const Zone&, const Zone&) = default;
};

}  // namespace onepass::lang::intervals
