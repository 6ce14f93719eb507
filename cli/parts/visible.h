// How much of the (query, key) rectangle a mask leaves: what speed figures count as work.
#pragma once

#include <cstdint>

#include "core/problem.h"
#include "onepass/plan.h"

namespace onepass::cli {

/// Pairs and tiles over every sequence and head.
struct Work {
  std::int64_t visible_pairs = 0;
  std::int64_t visited_tile_keys = 0;  // keys of the tiles that are not skipped, summed
  /// Multiplications and additions for each visible pair: 2 (d + d_v) of the forward's two
  /// products, 2.5 times that of the backward's five.
  double flops(const Problem& problem) const;
  /// Share of all pairs.
  double share(const Problem& problem) const;
};

/// Exact: partial tiles are evaluated pair by pair.
Work count_work(const Problem& problem, Tile tile);

}  // namespace onepass::cli
