// Visits the tiles of a row of tiles that are not skipped, without looking at every skipped one.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lang/interval.h"

namespace onepass::lang {

/// Calls visit(col_begin, col_end, kind) in key order for each tile of `tile_keys` keys (the last
/// may be shorter) in [col_begin, col_end) that is not `skip`, for the rows [row_begin, row_end).
/// A range of tiles is classified at once, and split in two only where it is mixed. `Reader` is
/// Classifier, or anything that classifies as it does.
template <class Reader, class Visit>
void for_each_tile(const Reader& classifier, std::int64_t row_begin, std::int64_t row_end,
                   std::int64_t col_begin, std::int64_t col_end, std::int64_t tile_keys,
                   Visit&& visit) {
  if (col_begin >= col_end || row_begin >= row_end) return;
  const TileKind kind = classifier.classify({row_begin, row_end, col_begin, col_end});
  if (kind == TileKind::skip) return;
  const std::int64_t tiles = (col_end - col_begin - 1) / tile_keys + 1;
  if (kind == TileKind::partial && tiles > 1) {
    const std::int64_t middle = col_begin + tiles / 2 * tile_keys;
    for_each_tile(classifier, row_begin, row_end, col_begin, middle, tile_keys, visit);
    for_each_tile(classifier, row_begin, row_end, middle, col_end, tile_keys, visit);
    return;
  }
  for (std::int64_t begin = col_begin; begin < col_end; begin += tile_keys) {
    visit(begin, std::min(begin + tile_keys, col_end), kind);
  }
}

}  // namespace onepass::lang
