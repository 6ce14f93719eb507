#include "cli/parts/visible.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "cli/parts/array.h"
#include "cli/parts/tile_map.h"
#include "lang/evaluate.h"
#include "lang/interval.h"

namespace onepass::cli {
namespace {

std::int64_t visible_in_tile(lang::Evaluator<float>& evaluator, const lang::TileRange& tile) {
  std::int64_t visible = 0;
  std::uint8_t shown[lang::max_keys + lang::lane_block];
  for (std::int64_t col = tile.col_begin; col < tile.col_end; col += lang::max_keys) {
    const int count = static_cast<int>(std::min<std::int64_t>(lang::max_keys, tile.col_end - col));
    evaluator.begin_keys(col, count);
    for (std::int64_t row = tile.row_begin; row < tile.row_end; ++row) {
      evaluator.mask_row(row, 0, count, shown);
      visible += std::accumulate(shown, shown + count, std::int64_t{0});
    }
  }
  return visible;
}

Work work_of(const Problem& problem, Tile tile, std::int64_t batch, std::int64_t head) {
  const TileMap map = map_tiles(problem, tile, batch, head);
  const lang::Scope scope = problem.scope(batch, head);
  const std::int64_t bytes[] = {lang::evaluator_scratch_bytes(problem.mask)};
  const Array scratch = zeros(DType::uint8, bytes);
  lang::Evaluator<float> evaluator(problem.mask, scope, lang::fits_int32(problem.mask, scope),
                                   scratch.view.data);
  Work work;
  for (std::int64_t row = 0; row < map.rows; ++row) {
    for (std::int64_t column = 0; column < map.columns; ++column) {
      const lang::TileKind kind = map.at(row, column);
      if (kind == lang::TileKind::skip) continue;
      const lang::TileRange range{row * map.tile.rows, std::min((row + 1) * map.tile.rows, map.s_q),
                                  column * map.tile.keys,
                                  std::min((column + 1) * map.tile.keys, map.s_kv)};
      const std::int64_t keys = range.col_end - range.col_begin;
      work.visited_tile_keys += keys;
      work.visible_pairs += kind == lang::TileKind::full ? (range.row_end - range.row_begin) * keys
                                                         : visible_in_tile(evaluator, range);
    }
  }
  return work;
}

}  // namespace

double Work::flops(const Problem& problem) const {
  const double products = problem.pass == Pass::forward ? 2.0 : 5.0;
  return products * static_cast<double>(problem.d + problem.d_v) *
         static_cast<double>(visible_pairs);
}

double Work::share(const Problem& problem) const {
  double pairs = 0.0;
  for (std::int64_t b = 0; b < problem.b; ++b) {
    const Sequence at = problem.sequence(b);
    pairs += static_cast<double>(problem.h_q) * static_cast<double>(at.s_q) *
             static_cast<double>(at.s_kv);
  }
  return pairs == 0.0 ? 0.0 : static_cast<double>(visible_pairs) / pairs;
}

Work count_work(const Problem& problem, Tile tile) {
  if (!problem.has_mask) {
    const std::int64_t rows = std::max<std::int64_t>(tile.rows, 1);
    Work total;
    for (std::int64_t b = 0; b < problem.b; ++b) {
      const Sequence at = problem.sequence(b);
      total.visible_pairs += problem.h_q * at.s_q * at.s_kv;
      total.visited_tile_keys += problem.h_q * ((at.s_q + rows - 1) / rows) * at.s_kv;
    }
    return total;
  }
  const std::uint8_t varies = problem.mask.top().varies;
  const bool by_batch = (varies & lang::varies_batch) != 0 || problem.varlen();
  const bool by_head = (varies & lang::varies_head) != 0;
  Work total;
  for (std::int64_t b = 0; b < (by_batch ? problem.b : std::min<std::int64_t>(problem.b, 1)); ++b) {
    for (std::int64_t h = 0; h < (by_head ? problem.h_q : std::min<std::int64_t>(problem.h_q, 1));
         ++h) {
      const Work work = work_of(problem, tile, b, h);
      const std::int64_t times = (by_batch ? 1 : problem.b) * (by_head ? 1 : problem.h_q);
      total.visible_pairs += work.visible_pairs * times;
      total.visited_tile_keys += work.visited_tile_keys * times;
    }
  }
  return total;
}

}  // namespace onepass::cli
