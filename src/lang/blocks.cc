#include "lang/blocks.h"

namespace onepass::lang::intervals {

bool share_value(const Block& a, const ValueSet& a_set, const Block& b, const ValueSet& b_set) {
  std::int64_t i = 0, j = 0;
  while (i < a.distinct && j < b.distinct) {
    const std::int64_t x = a_set.values[i];
    const std::int64_t y = b_set.values[j];
    if (x == y) return true;
    i += x < y;
    j += y < x;
  }
  return false;
}

void Collector::operator()(std::int64_t value) {
  // Values come in runs: most are the one before.
  if (set_ != nullptr) {
    if (block_.distinct > 0 && set_->values[block_.distinct - 1] == value) return;
    set_->values[block_.distinct++] = value;
    block_.signature |= signature_bit(value);
  }
  block_.range.integer.lo = std::min(block_.range.integer.lo, value);
  block_.range.integer.hi = std::max(block_.range.integer.hi, value);
}

void Collector::operator()(float value) {
  block_.range = intervals::hull(type_, block_.range, only(type_, {.real = value}));
}

Block Collector::finish() {
  if (block_.distinct > 1) {
    const auto begin = set_->values.begin();
    if (!std::is_sorted(begin, begin + block_.distinct)) {
      std::sort(begin, begin + block_.distinct);
    }
    block_.distinct = std::unique(begin, begin + block_.distinct) - begin;
  }
  return block_;
}

Block hull(Type type, const Block& a, const Block& b) {
  return {hull(type, a.range, b.range), a.signature | b.signature, 0};
}

std::int64_t BlockTree::bytes(std::int64_t length, bool with_sets) {
  std::int64_t count = (length + block_size - 1) / block_size;
  std::int64_t total = with_sets ? count * static_cast<std::int64_t>(sizeof(ValueSet)) : 0;
  while (count > 0) {
    total += count * static_cast<std::int64_t>(sizeof(Block));
    count = count > 1 ? (count + fan - 1) / fan : 0;
  }
  return (total + 63) / 64 * 64;
}

BlockTree::BlockTree(void* memory, std::int64_t length, bool with_sets) : length_(length) {
  char* at = static_cast<char*>(memory);
  count_ = (length + block_size - 1) / block_size;
  if (with_sets) {
    sets_ = reinterpret_cast<ValueSet*>(at);
    at += count_ * static_cast<std::int64_t>(sizeof(ValueSet));
  }
  for (std::int64_t count = count_; count > 0; count = count > 1 ? (count + fan - 1) / fan : 0) {
    level_[levels_++] = reinterpret_cast<Block*>(at);
    at += count * static_cast<std::int64_t>(sizeof(Block));
  }
}

void BlockTree::build(Type type) {
  std::int64_t below = count_;
  for (int level = 1; level < levels_; ++level) {
    const std::int64_t count = (below + fan - 1) / fan;
    for (std::int64_t i = 0; i < count; ++i) {
      Block all = level_[level - 1][i * fan];
      for (std::int64_t j = i * fan + 1; j < std::min((i + 1) * fan, below); ++j) {
        all = hull(type, all, level_[level - 1][j]);
      }
      level_[level][i] = all;
    }
    below = count;
  }
}

Block BlockTree::over(Type type, std::int64_t begin, std::int64_t end) const {
  Block all;
  all.range = nothing(type);
  for (std::int64_t i = begin; i < end;) {
    const int level = top_level(i, end);
    all = hull(type, all, level_[level][i >> (fan_log2 * level)]);
    i += width(level);
  }
  return all;
}

}  // namespace onepass::lang::intervals
