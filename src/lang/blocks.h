// Summaries of a sequence of values: what occurs in each block of 64, and in blocks of blocks.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "lang/range.h"

namespace onepass::lang::intervals {

/// Rows or keys of one block.
inline constexpr std::int64_t block_size = 64;
/// Blocks that one block of the next level covers: 8.
inline constexpr int fan_log2 = 3;
inline constexpr std::int64_t fan = 1 << fan_log2;

/// Bit of a value in a signature: two sets whose signatures share no bit share no value.
inline std::uint64_t signature_bit(std::int64_t value) {
  return std::uint64_t{1} << ((static_cast<std::uint64_t>(value) * 0x9e3779b97f4a7c15u) >> 58);
}

struct Block {
  Range range;
  std::uint64_t signature = 0;  // of integers that have a set
  std::int64_t distinct = 0;    // of a leaf: how many values its set has
};

/// The different integers of one leaf, ascending.
struct ValueSet {
  std::array<std::int64_t, block_size> values;
};

/// Whether two leaves have a value in common.
bool share_value(const Block& a, const ValueSet& a_set, const Block& b, const ValueSet& b_set);

/// Takes the values of one leaf, or part of one, into a Block and, where asked for, a ValueSet.
class Collector {
 public:
  Collector(Type type, ValueSet* set) : type_(type), set_(set) { block_.range = nothing(type); }
  void operator()(std::int64_t value);
  void operator()(float value);
  /// What was collected; puts the set in order.
  Block finish();

 private:
  Type type_;
  ValueSet* set_;
  Block block_;
};

Block hull(Type type, const Block& a, const Block& b);

/// The blocks of one sequence at every level, in memory of the caller.
class BlockTree {
 public:
  static std::int64_t bytes(std::int64_t length, bool with_sets);
  BlockTree() = default;
  BlockTree(void* memory, std::int64_t length, bool with_sets);

  bool given() const { return levels_ > 0; }
  std::int64_t length() const { return length_; }
  std::int64_t count() const { return count_; }
  Block& leaf(std::int64_t i) { return level_[0][i]; }
  const Block& leaf(std::int64_t i) const { return level_[0][i]; }
  /// Null without sets.
  ValueSet* set(std::int64_t i) { return sets_ == nullptr ? nullptr : sets_ + i; }
  const ValueSet* set(std::int64_t i) const { return sets_ == nullptr ? nullptr : sets_ + i; }

  /// Computes the upper levels from the leaves.
  void build(Type type);
  /// Everything that occurs in the blocks [begin, end).
  Block over(Type type, std::int64_t begin, std::int64_t end) const;
  /// Whether visit(leaf) is true for a block of [begin, end); passes by those inside a larger block
  /// of which `worth(block)` is false.
  template <class Worth, class Visit>
  bool any(std::int64_t begin, std::int64_t end, Worth worth, Visit visit) const {
    std::int64_t i = begin;
    int level = top_level(i, end);
    while (i < end) {
      if (!worth(level_[level][i >> (fan_log2 * level)])) {
        i += width(level);
        level = top_level(i, end);
      } else if (level > 0) {
        --level;
      } else {
        if (visit(i)) return true;
        ++i;
        level = top_level(i, end);
      }
    }
    return false;
  }

 private:
  /// The highest level that has a block which starts at leaf `i` and ends by `end`.
  int top_level(std::int64_t i, std::int64_t end) const {
    int level = 0;
    while (level + 1 < levels_ && (i & (width(level + 1) - 1)) == 0 &&
           i + width(level + 1) <= end) {
      ++level;
    }
    return level;
  }

  /// Leaves that one block of this level covers.
  static std::int64_t width(int level) { return std::int64_t{1} << (fan_log2 * level); }

  static constexpr int max_levels = 20;
  int levels_ = 0;
  std::int64_t length_ = 0;
  ValueSet* sets_ = nullptr;
  std::int64_t count_ = 0;  // leaves
  std::array<Block*, max_levels> level_;
};

}  // namespace onepass::lang::intervals
