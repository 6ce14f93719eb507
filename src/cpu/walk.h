// Which tiles of keys a query tile looks at, and which groups of 6 rows x 64 keys inside one.
#pragma once

#include <cstdint>

#include "cpu/forward.h"
#include "lang/interval.h"

namespace onepass::cpu {

/// Rows [row_begin, row_end) of one (sequence, head).
struct RowRange {
  std::int64_t row_begin, row_end;
};

using VisitKeys = void (*)(void* context, std::int64_t key_begin, std::int64_t key_end, bool full);

/// Visits, in key order, the tiles of `tile_keys` keys in [0, s_kv) that these rows may see;
/// without a classifier each of them is full. Skipped ranges are decided many tiles at once.
void walk_keys(const lang::Classifier* classifier, RowRange rows, std::int64_t s_kv,
               std::int64_t tile_keys, void* context, VisitKeys visit);

using VisitRows = void (*)(void* context, std::int64_t row_begin, std::int64_t row_end, bool full);

/// Visits, in order, the tiles of `tile_rows` rows in [0, s_q) that may see keys
/// [key_begin, key_end); as walk_keys otherwise.
void walk_rows(const lang::Classifier* classifier, std::int64_t s_q, std::int64_t key_begin,
               std::int64_t key_end, std::int64_t tile_rows, void* context, VisitRows visit);

/// Kind of each group: kinds[row group][key group], row groups counted from rows.row_begin and key
/// groups from key_begin; at most max_tile_keys keys.
inline constexpr int max_key_groups = max_tile_keys / group_keys;
void classify_groups(const lang::Classifier& classifier, RowRange rows, std::int64_t key_begin,
                     std::int64_t key_end, lang::TileKind (*kinds)[max_key_groups]);

}  // namespace onepass::cpu
