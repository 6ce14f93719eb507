// What a summarised subterm can be over any range of rows or keys.
#pragma once

#include "lang/blocks.h"
#include "lang/exact.h"

namespace onepass::lang::intervals {

/// A term's summaries, and its values for the parts of a range that are no whole block.
struct TermQuery {
  BlockTree tree;  // not given: nothing is known of the term
  TermReader reader;

  /// The exact range of the values in [begin, end), which lies inside the term's length.
  Range range(const Constants& constants, std::int64_t begin, std::int64_t end) const;
};

/// False only if no value of `a` in [a_begin, a_end) is one of `b` in [b_begin, b_end). Both are
/// integers whose trees have sets; the ranges are not empty.
bool may_share(const Constants& constants, const TermQuery& a, std::int64_t a_begin,
               std::int64_t a_end, const TermQuery& b, std::int64_t b_begin, std::int64_t b_end);

}  // namespace onepass::lang::intervals
