#include "cli/parts/tile_map.h"

#include <algorithm>
#include <cstdio>

#include "cli/parts/array.h"
#include "cli/parts/svg_text.h"
#include "core/rounding.h"

namespace onepass::cli {
namespace {

using lang::TileKind;

constexpr std::int64_t most_tiles = std::int64_t{1} << 22;

class Mapper {
 public:
  Mapper(TileMap& map, const lang::Classifier& classifier) : map_(map), classifier_(classifier) {}

  // Tiles [row0, row1) x [column0, column1): at once where they are alike, else in four parts.
  void fill(std::int64_t row0, std::int64_t row1, std::int64_t column0, std::int64_t column1) {
    if (row0 >= row1 || column0 >= column1) return;
    const TileKind kind =
        classifier_.classify({.row_begin = row0 * map_.tile.rows,
                              .row_end = std::min(row1 * map_.tile.rows, map_.s_q),
                              .col_begin = column0 * map_.tile.keys,
                              .col_end = std::min(column1 * map_.tile.keys, map_.s_kv)});
    if (kind != TileKind::partial || (row1 - row0 == 1 && column1 - column0 == 1)) {
      for (std::int64_t row = row0; row < row1; ++row) {
        std::fill_n(map_.kinds.begin() + row * map_.columns + column0, column1 - column0, kind);
      }
      count(kind) += (row1 - row0) * (column1 - column0);
      return;
    }
    const std::int64_t row = row0 + (row1 - row0 + 1) / 2;
    const std::int64_t column = column0 + (column1 - column0 + 1) / 2;
    fill(row0, row, column0, column);
    fill(row0, row, column, column1);
    fill(row, row1, column0, column);
    fill(row, row1, column, column1);
  }

 private:
  std::int64_t& count(TileKind kind) {
    if (kind == TileKind::skip) return map_.skipped;
    return kind == TileKind::full ? map_.full : map_.partial;
  }
  TileMap& map_;
  const lang::Classifier& classifier_;
};

// The kind of a block of tiles, for pictures with fewer cells than tiles.
TileKind block_kind(const TileMap& map, std::int64_t row0, std::int64_t row1, std::int64_t column0,
                    std::int64_t column1) {
  const TileKind first = map.at(row0, column0);
  for (std::int64_t row = row0; row < row1; ++row) {
    for (std::int64_t column = column0; column < column1; ++column) {
      if (map.at(row, column) != first) return TileKind::partial;
    }
  }
  return first;
}

// A grid of at most `most` cells a side over the map.
struct Grid {
  std::int64_t step, rows, columns;  // step = tiles per cell side
  Grid(const TileMap& map, std::int64_t most)
      : step(std::max<std::int64_t>(1, divide_up(std::max(map.rows, map.columns), most))),
        rows(divide_up(map.rows, step)),
        columns(divide_up(map.columns, step)) {}
  TileKind at(const TileMap& map, std::int64_t row, std::int64_t column) const {
    return block_kind(map, row * step, std::min((row + 1) * step, map.rows), column * step,
                      std::min((column + 1) * step, map.columns));
  }
};

std::string percent(std::int64_t part, std::int64_t whole) {
  char text[16];
  std::snprintf(text, sizeof text, "%.1f %%",
                whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole));
  return text;
}

const char* colour(TileKind kind) {
  if (kind == TileKind::skip) return "#f4f4f4";
  return kind == TileKind::full ? "#1b6ca8" : "#f2a65a";
}

std::string svg_rect(double x, double y, double width, double height, const char* fill) {
  char text[128];
  std::snprintf(text, sizeof text,
                "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"/>\n", x, y,
                width, height, fill);
  return text;
}

std::string svg_text(double x, double y, const std::string& text) {
  char place[48];
  std::snprintf(place, sizeof place, "<text x=\"%.0f\" y=\"%.0f\">", x, y);
  return place + escaped(text) + "</text>\n";
}

}  // namespace

TileMap map_tiles(const Problem& problem, Tile tile, std::int64_t batch, std::int64_t head) {
  TileMap map;
  const Sequence at = problem.sequence(batch);
  map.s_q = at.s_q, map.s_kv = at.s_kv;
  map.tile = {std::max<std::int64_t>(tile.rows, 1), std::max<std::int64_t>(tile.keys, 1)};
  while (divide_up(map.s_q, map.tile.rows) >
         most_tiles / std::max<std::int64_t>(divide_up(map.s_kv, map.tile.keys), 1)) {
    map.tile = {map.tile.rows * 2, map.tile.keys * 2};
  }
  map.rows = divide_up(map.s_q, map.tile.rows), map.columns = divide_up(map.s_kv, map.tile.keys);
  map.kinds.assign(static_cast<std::size_t>(map.rows * map.columns), TileKind::full);
  if (!problem.has_mask) {
    map.full = map.rows * map.columns;
    return map;
  }
  const lang::Scope scope = problem.scope(batch, head);
  const std::int64_t bytes[] = {lang::Summaries::bytes(problem.mask, map.s_q, map.s_kv)};
  const Array memory = zeros(DType::uint8, bytes);
  const lang::Summaries summaries(problem.mask, scope, memory.view.data);
  const lang::Classifier classifier(problem.mask, scope, summaries);
  Mapper(map, classifier).fill(0, map.rows, 0, map.columns);
  return map;
}

std::string to_text(const TileMap& map) {
  if (map.kinds.empty()) return "tiles      none: a size is 0\n";
  const Grid grid(map, 64);
  const std::int64_t tiles = map.rows * map.columns;
  std::string text = "tiles      " + std::to_string(map.tile.rows) + " x " +
                     std::to_string(map.tile.keys) + ": " + std::to_string(map.rows) + " x " +
                     std::to_string(map.columns) + " = " + std::to_string(tiles) + "; " +
                     std::to_string(map.skipped) + " skipped (.) " + percent(map.skipped, tiles) +
                     ", " + std::to_string(map.full) + " full (#) " + percent(map.full, tiles) +
                     ", " + std::to_string(map.partial) + " partial (+) " +
                     percent(map.partial, tiles) + "\n";
  if (grid.step > 1) {
    text += "           one character is " + std::to_string(grid.step) + " x " +
            std::to_string(grid.step) + " tiles, + where they differ\n";
  }
  for (std::int64_t row = 0; row < grid.rows; ++row) {
    text += "  ";
    for (std::int64_t column = 0; column < grid.columns; ++column) {
      const TileKind kind = grid.at(map, row, column);
      text += kind == TileKind::skip ? '.' : (kind == TileKind::full ? '#' : '+');
    }
    text += '\n';
  }
  return text;
}

std::string to_svg(const TileMap& map, const std::string& title) {
  constexpr double side = 512.0, left = 16.0, top = 56.0;
  const Grid grid(map, 256);
  const double longest = static_cast<double>(std::max<std::int64_t>({map.s_q, map.s_kv, 1}));
  const double width = side * static_cast<double>(map.s_kv) / longest;
  const double height = side * static_cast<double>(map.s_q) / longest;
  const auto x_of = [&](std::int64_t column) {
    return left + std::min(width, side * static_cast<double>(column * grid.step * map.tile.keys) /
                                      longest);
  };
  const auto y_of = [&](std::int64_t row) {
    return top +
           std::min(height, side * static_cast<double>(row * grid.step * map.tile.rows) / longest);
  };
  char head[160];
  std::snprintf(head, sizeof head,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"640\" height=\"%.0f\" "
                "font-family=\"sans-serif\" font-size=\"13\">\n",
                top + height + 60.0);
  std::string text = head;
  text += svg_rect(0, 0, 640, top + height + 60.0, "#ffffff");
  text += svg_text(left, 22, title);
  if (map.kinds.empty()) {
    return text + svg_text(left, 42, "no tiles: a size is 0") + "</svg>\n";
  }
  text += svg_text(left, 42,
                   "queries down, keys across; tiles of " + std::to_string(map.tile.rows) + " x " +
                       std::to_string(map.tile.keys));
  text += svg_rect(left, top, width, height, colour(TileKind::skip));
  for (std::int64_t row = 0; row < grid.rows; ++row) {
    for (std::int64_t column = 0; column < grid.columns;) {
      const TileKind kind = grid.at(map, row, column);
      const std::int64_t begin = column;
      while (column < grid.columns && grid.at(map, row, column) == kind) ++column;
      if (kind == TileKind::skip) continue;
      text += svg_rect(x_of(begin), y_of(row), x_of(column) - x_of(begin),
                       y_of(row + 1) - y_of(row), colour(kind));
    }
  }
  const std::int64_t tiles = map.rows * map.columns;
  const std::pair<TileKind, std::string> legend[] = {
      {TileKind::skip, "skipped " + percent(map.skipped, tiles)},
      {TileKind::full, "full, no mask code " + percent(map.full, tiles)},
      {TileKind::partial, "mask evaluated " + percent(map.partial, tiles)}};
  double x = left;
  for (const auto& [kind, words] : legend) {
    text += svg_rect(x, top + height + 22, 14, 14, colour(kind));
    text += svg_text(x + 20, top + height + 34, words);
    x += 190;
  }
  return text + "</svg>\n";
}

}  // namespace onepass::cli
