// Interval reader: what a mask can be over a whole tile of (row, col) pairs of one (sequence,
// head).
#pragma once

#include <cstddef>
#include <cstdint>

#include "lang/program.h"
#include "lang/summaries.h"

namespace onepass::lang {

enum class TileKind : std::uint8_t {
  skip,     // no pair of the tile is visible
  full,     // every pair is visible
  partial,  // undecided: the mask must be evaluated
};

/// Half-open ranges of rows and keys.
struct TileRange {
  std::int64_t row_begin, row_end, col_begin, col_end;
};

/// Pairs with row in [row_lo, row_hi], col in [col_lo, col_hi] and col - row in [diff_lo, diff_hi].
struct PairBounds {
  std::int64_t row_lo, row_hi, col_lo, col_hi, diff_lo, diff_hi;
};

/// Classifies tiles of one (sequence, head). Sound always; exact for causal, window, chunked,
/// prefix, lengths and document with non-decreasing ids, at any tile.
///
/// Neither construction nor classification allocates. It keeps pointers to the program and to the
/// summaries' memory; one object may be used by several threads at once.
class Classifier {
 public:
  /// `summaries` were made for the same mask and sequence (and head, if Summaries::per_head).
  /// A mask of more than 256 nodes, or with an array that is not in host memory, is not analysed:
  /// each of its tiles is partial.
  Classifier(const Program& mask, const Scope& scope, const Summaries& summaries);

  /// Pairs outside of the scope's lengths do not count; a tile without any pair is `skip`.
  TileKind classify(const TileRange& tile) const;

  /// True where the mask is nothing but such bounds for this scope, as causal, window and lengths
  /// are: a pair is visible if and only if it keeps them.
  bool bounds(PairBounds* bounds) const;

 private:
  static constexpr std::size_t analysis_bytes = 24 * 1024;
  // An intervals::Analysis, kept out of this header: kernels are compiled for several instruction
  // sets, and inline functions must not leak from one into another.
  alignas(64) std::byte analysis_[analysis_bytes];
};

/// Every integer subterm of the program fits int32 for all rows and cols of this scope's lengths.
/// Reads int64 arrays, while their part is no longer than the lengths. False when it has more than
/// 256 nodes.
bool fits_int32(const Program& program, const Scope& scope);

}  // namespace onepass::lang
