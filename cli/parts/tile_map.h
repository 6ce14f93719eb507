// What the mask is over every tile of one (sequence, head), and pictures of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/problem.h"
#include "lang/interval.h"
#include "onepass/plan.h"

namespace onepass::cli {

struct TileMap {
  std::int64_t s_q = 0, s_kv = 0;
  Tile tile;                           // doubled as often as it takes to keep the map small
  std::int64_t rows = 0, columns = 0;  // in tiles
  std::vector<lang::TileKind> kinds;   // (rows, columns)
  std::int64_t skipped = 0, full = 0, partial = 0;

  lang::TileKind at(std::int64_t row, std::int64_t column) const {
    return kinds[static_cast<std::size_t>(row * columns + column)];
  }
};

/// Classifies from large ranges down, as the kernels do.
TileMap map_tiles(const Problem& problem, Tile tile, std::int64_t batch, std::int64_t head);

/// A map without tiles says so. At most 64 characters wide: `.` skipped, `#` full, `+` partial,
/// with a line of counts.
std::string to_text(const TileMap& map);

/// A picture with a legend; `title` is any text.
std::string to_svg(const TileMap& map, const std::string& title);

}  // namespace onepass::cli
