// Summaries of a mask's array reads, made once before its tiles are classified.
#pragma once

#include <cstdint>

#include "lang/program.h"

namespace onepass::lang {

/// Summaries of the mask's one-sided array reads (subterms that read an array at a place given by
/// the query alone or by the key alone): per 64 rows or keys their least and greatest value, and
/// for integers under `==` or `!=` with the other side a 64-bit signature and the different values.
/// Above them lie levels that cover 8, 64, ... such blocks. They take about half a byte per row or
/// key, or 9 bytes with the values, in memory of the caller.
class Summaries {
 public:
  /// Exact bytes needed for one scope with these lengths; 0 when nothing is summarised.
  static std::int64_t bytes(const Program& mask, std::int64_t s_q, std::int64_t s_kv);
  /// Whether they change with the head: otherwise one Summaries serves every head of a sequence.
  static bool per_head(const Program& mask);

  /// None: every read that would be summarised counts as unknown.
  Summaries() = default;
  /// Fills `memory` (64-byte aligned) for one scope; reads each summarised array once. The memory
  /// must outlive every Classifier made from it.
  Summaries(const Program& mask, const Scope& scope, void* memory);

 private:
  friend class Classifier;
  void* memory_ = nullptr;
};

}  // namespace onepass::lang
