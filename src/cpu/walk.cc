#include "cpu/walk.h"

#include <algorithm>

#include "lang/tile_walk.h"

namespace onepass::cpu {
namespace {

struct Column {
  const lang::Classifier& classifier;
  RowRange rows;
  std::int64_t key_begin, key_end;
  int key_group;
  lang::TileKind (*kinds)[max_key_groups];
};

// Row groups [first, last) against one group of keys: at once, then in halves where undecided, down
// to two: looking at their mask costs less than classifying each (6 % of 32 documents in 8192
// keys).
void classify_column(const Column& c, int first, int last) {
  const std::int64_t begin = c.rows.row_begin + std::int64_t{first} * group_rows;
  const std::int64_t end =
      std::min(c.rows.row_begin + std::int64_t{last} * group_rows, c.rows.row_end);
  const lang::TileKind kind = c.classifier.classify({begin, end, c.key_begin, c.key_end});
  if (kind == lang::TileKind::partial && last - first > 2) {
    const int middle = first + (last - first) / 2;
    classify_column(c, first, middle);
    classify_column(c, middle, last);
    return;
  }
  for (int group = first; group < last; ++group) c.kinds[group][c.key_group] = kind;
}

struct KeyColumn {
  const lang::Classifier& classifier;
  std::int64_t key_begin, key_end, tile_rows;
  void* context;
  VisitRows visit;
};

// Rows [begin, end) at once, then in halves of whole tiles where they are mixed.
void walk_row_tiles(const KeyColumn& c, std::int64_t begin, std::int64_t end) {
  const lang::TileKind kind = c.classifier.classify({begin, end, c.key_begin, c.key_end});
  if (kind == lang::TileKind::skip) return;
  const std::int64_t tiles = (end - begin + c.tile_rows - 1) / c.tile_rows;
  if (kind == lang::TileKind::partial && tiles > 1) {
    const std::int64_t middle = begin + tiles / 2 * c.tile_rows;
    walk_row_tiles(c, begin, middle);
    walk_row_tiles(c, middle, end);
    return;
  }
  for (std::int64_t row = begin; row < end; row += c.tile_rows) {
    c.visit(c.context, row, std::min(row + c.tile_rows, end), kind == lang::TileKind::full);
  }
}

}  // namespace

void walk_rows(const lang::Classifier* classifier, std::int64_t s_q, std::int64_t key_begin,
               std::int64_t key_end, std::int64_t tile_rows, void* context, VisitRows visit) {
  if (classifier) {
    const KeyColumn column{*classifier, key_begin, key_end, tile_rows, context, visit};
    if (s_q > 0) walk_row_tiles(column, 0, s_q);
    return;
  }
  for (std::int64_t row = 0; row < s_q; row += tile_rows) {
    visit(context, row, std::min(row + tile_rows, s_q), true);
  }
}

void walk_keys(const lang::Classifier* classifier, RowRange rows, std::int64_t s_kv,
               std::int64_t tile_keys, void* context, VisitKeys visit) {
  if (classifier) {
    lang::for_each_tile(*classifier, rows.row_begin, rows.row_end, 0, s_kv, tile_keys,
                        [&](std::int64_t begin, std::int64_t end, lang::TileKind kind) {
                          visit(context, begin, end, kind == lang::TileKind::full);
                        });
    return;
  }
  for (std::int64_t begin = 0; begin < s_kv; begin += tile_keys) {
    visit(context, begin, std::min(begin + tile_keys, s_kv), true);
  }
}

void classify_groups(const lang::Classifier& classifier, RowRange rows, std::int64_t key_begin,
                     std::int64_t key_end, lang::TileKind (*kinds)[max_key_groups]) {
  const auto row_groups =
      static_cast<int>((rows.row_end - rows.row_begin + group_rows - 1) / group_rows);
  int key_group = 0;
  for (std::int64_t begin = key_begin; begin < key_end; begin += group_keys, ++key_group) {
    const std::int64_t end = std::min(begin + group_keys, key_end);
    classify_column({classifier, rows, begin, end, key_group, kinds}, 0, row_groups);
  }
}

}  // namespace onepass::cpu
