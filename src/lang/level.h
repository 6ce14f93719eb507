// How often a node's value changes while a kernel walks rows and keys of one (sequence, head).
#pragma once

#include <cstdint>

#include "lang/program.h"

namespace onepass::lang {

/// Bit 0: with the row. Bit 1: with the key. The logit belongs to a pair.
enum class Level : std::uint8_t { scope = 0, row = 1, keys = 2, pair = 3 };
inline constexpr int level_count = 4;

inline Level level_of(Name name) {
  switch (name) {
    case Name::q:
    case Name::row:
    case Name::token_q:
      return Level::row;
    case Name::k:
    case Name::col:
    case Name::token_k:
      return Level::keys;
    case Name::s:
      return Level::pair;
    default:
      return Level::scope;
  }
}

/// `level_at(i)` gives the level of an earlier node.
template <class LevelAt>
Level level_of(const Node& node, const LevelAt& level_at) {
  int level = node.op == Op::name ? static_cast<int>(level_of(node.name)) : 0;
  for (int i = 0; i < node.operands; ++i) {
    level |= static_cast<int>(level_at(node.operand[static_cast<std::size_t>(i)]));
  }
  return static_cast<Level>(level);
}

}  // namespace onepass::lang
