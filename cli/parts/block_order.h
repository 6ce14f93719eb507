// A picture of the order in which the teaching versions visit blocks of the score matrix.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reference/teaching.h"

namespace onepass::cli {

struct BlockPanel {
  std::string title, caption;
  std::vector<reference::Visit> order;
};

/// SVG with one grid a panel: a cell is a (query block, key block) pair, its shade and number say
/// when it was visited, white cells never were.
std::string draw_block_order(const std::vector<BlockPanel>& panels, std::int64_t q_blocks,
                             std::int64_t k_blocks);

}  // namespace onepass::cli
