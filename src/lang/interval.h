// Interval reader: what a mask can be over a whole tile of (row, col) pairs of one (sequence,
// head).
#pragma once

#include <cstdint>
#include <span>

#include "lang/program.h"

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

/// Summaries of the program's one-sided array reads (per 64 rows or 64 keys: min, max, and for ints
/// a 64-bit signature of the values), in memory of the caller. Reads that depend on b or h have one
/// set for each (b, h) asked for.
class Summaries {
 public:
  /// Exact bytes needed for one scope of this program with these lengths; 0 when nothing is
  /// summarised.
  static std::int64_t bytes(const Program& mask, std::int64_t s_q, std::int64_t s_kv);
  /// Fills `memory` (64-byte aligned) for one scope.
  Summaries(const Program& mask, const Scope& scope, void* memory);
  Summaries() = default;

 private:
  friend class Classifier;
  const Program* program_ = nullptr;
  void* memory_ = nullptr;
};

/// Classifies tiles of one (sequence, head). Allocates nothing; cheap to copy. Sound always; exact
/// for causal, window, chunked, prefix, lengths and document with non-decreasing ids.
class Classifier {
 public:
  /// Integer mask programs of more nodes than this are not analysed (every tile is partial).
  static constexpr int max_nodes = 256;
  Classifier(const Program& mask, const Scope& scope, const Summaries& summaries);
  TileKind classify(const TileRange& tile) const;

 private:
  const Program* program_;
  Scope scope_;
  Summaries summaries_;
};

/// Every subterm of the program fits int32 for all rows and cols of this scope's lengths.
bool fits_int32(const Program& program, const Scope& scope);

}  // namespace onepass::lang
