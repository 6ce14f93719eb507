#include "lang/interval.h"

#include <new>
#include <type_traits>

#include "lang/analysis.h"

namespace onepass::lang {

using intervals::Analysis;

Classifier::Classifier(const Program& mask, const Scope& scope, const Summaries& summaries) {
  static_assert(sizeof(Analysis) <= analysis_bytes && alignof(Analysis) <= 64);
  static_assert(std::is_trivially_copyable_v<Analysis> &&
                std::is_trivially_destructible_v<Analysis>);
  new (analysis_) Analysis(mask, scope, summaries.memory_);
}

TileKind Classifier::classify(const TileRange& tile) const {
  return std::launder(reinterpret_cast<const Analysis*>(analysis_))->classify(tile);
}

bool Classifier::bounds(PairBounds* bounds) const {
  const intervals::Zone* zone = std::launder(reinterpret_cast<const Analysis*>(analysis_))->zone();
  if (zone == nullptr) return false;
  *bounds = {zone->row_lo, zone->row_hi, zone->col_lo, zone->col_hi, zone->diff_lo, zone->diff_hi};
  return true;
}

}  // namespace onepass::lang
