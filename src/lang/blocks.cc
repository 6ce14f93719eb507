#include "lang/blocks.h"

namespace onepass::lang::intervals {

void ValueSet::insert(std::int64_t value) {
  if (!complete()) return;
  for (std::int64_t i = 0; i < count; ++i) {
    if (values[i] == value) return;
  }
  if (count < most) values[count] = value;
  ++count;
}

bool ValueSet::may_share(const ValueSet& other) const {
  if (!complete() || !other.complete()) return true;
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t j = 0; j < other.count; ++j) {
      if (values[i] == other.values[j]) return true;
    }
  }
  return false;
}

void Collector::operator()(std::int64_t value) {
  if (any_ && value == last_) return;
  any_ = true;
  last_ = value;
  block.range.integer.lo = std::min(block.range.integer.lo, value);
  block.range.integer.hi = std::max(block.range.integer.hi, value);
  if (set_ == nullptr) return;
  block.signature |= signature_bit(value);
  set_->insert(value);
}

void Collector::operator()(float value) {
  block.range = intervals::hull(type_, block.range, only(type_, {.real = value}));
}

Block hull(Type type, const Block& a, const Block& b) {
  return {hull(type, a.range, b.range), a.signature | b.signature};
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
  Block all{nothing(type), 0};
  for (std::int64_t i = begin; i < end;) {
    const int level = top_level(i, end);
    all = hull(type, all, level_[level][i >> (fan_log2 * level)]);
    i += width(level);
  }
  return all;
}

}  // namespace onepass::lang::intervals
