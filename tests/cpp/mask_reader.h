// What the tests of the interval reader share: a mask ready to be classified, and the truth.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lang/compile.h"
#include "lang/interval.h"
#include "program_oracle.h"

namespace onepass::lang {

/// A classifier with the memory of its summaries. The program must outlive it.
class MaskReader {
 public:
  MaskReader(const Program& mask, const Scope& scope)
      : memory_(
            static_cast<std::size_t>((Summaries::bytes(mask, scope.s_q, scope.s_kv) + 63) / 64)),
        classifier(mask, scope, Summaries(mask, scope, memory_.data())) {}
  MaskReader(const MaskReader&) = delete;

 private:
  struct alignas(64) Line {
    char bytes[64];
  };
  std::vector<Line> memory_;

 public:
  const Classifier classifier;
};

/// How many pairs of any rectangle of a scope are visible, counted pair by pair.
class VisibleCounts {
 public:
  VisibleCounts(const Program& mask, const Scope& scope)
      : scope_(scope), sums_(static_cast<std::size_t>((scope.s_q + 1) * (scope.s_kv + 1))) {
    Oracle<float> oracle(mask, scope);
    for (std::int64_t row = 0; row < scope.s_q; ++row) {
      std::int64_t line = 0;
      for (std::int64_t col = 0; col < scope.s_kv; ++col) {
        line += oracle.at(row, col).integer;
        at(row + 1, col + 1) = at(row, col + 1) + line;
      }
    }
    only_int32_ = oracle.met_only_int32();
  }

  std::int64_t in(const TileRange& tile) const {
    const std::int64_t row_end = std::min(tile.row_end, scope_.s_q);
    const std::int64_t col_end = std::min(tile.col_end, scope_.s_kv);
    return at(row_end, col_end) - at(tile.row_begin, col_end) - at(row_end, tile.col_begin) +
           at(tile.row_begin, tile.col_begin);
  }
  std::int64_t pairs(const TileRange& tile) const {
    return (std::min(tile.row_end, scope_.s_q) - tile.row_begin) *
           (std::min(tile.col_end, scope_.s_kv) - tile.col_begin);
  }
  /// What an exact classification says.
  TileKind kind(const TileRange& tile) const {
    const std::int64_t seen = in(tile);
    if (seen == 0) return TileKind::skip;
    return seen == pairs(tile) ? TileKind::full : TileKind::partial;
  }
  bool only_int32() const { return only_int32_; }

 private:
  std::int64_t at(std::int64_t row, std::int64_t col) const {
    return sums_[static_cast<std::size_t>(row * (scope_.s_kv + 1) + col)];
  }
  std::int64_t& at(std::int64_t row, std::int64_t col) {
    return sums_[static_cast<std::size_t>(row * (scope_.s_kv + 1) + col)];
  }

  Scope scope_;
  std::vector<std::int64_t> sums_;
  bool only_int32_ = true;
};

inline std::string line_of(const Scope& s) {
  const auto text = [](std::int64_t x) { return std::to_string(x); };
  return "b=" + text(s.b) + " h=" + text(s.h) + " s=" + text(s.s_q) + "/" + text(s.s_kv) +
         " q_start=" + text(s.q_start) + " k_start=" + text(s.k_start) +
         " token_q_start=" + text(s.token_q_start) + " token_k_start=" + text(s.token_k_start);
}

inline std::string line_of(const TileRange& t) {
  const auto text = [](std::int64_t x) { return std::to_string(x); };
  return "rows " + text(t.row_begin) + ":" + text(t.row_end) + " cols " + text(t.col_begin) + ":" +
         text(t.col_end);
}

inline const char* name(TileKind kind) {
  return kind == TileKind::skip ? "skip" : kind == TileKind::full ? "full" : "partial";
}

}  // namespace onepass::lang
