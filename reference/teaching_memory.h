// Slow memory with a counter at its door, and the arithmetic that the three lessons share.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "reference/teaching.h"

namespace onepass::reference {

inline constexpr float no_key = -std::numeric_limits<float>::infinity();

inline std::int64_t blocks_of(std::int64_t length, std::int64_t block) {
  return (length + block - 1) / block;
}

/// Rows [begin, end) of one block.
struct Block {
  std::int64_t begin, end;
  std::int64_t size() const { return end - begin; }
};
inline Block block_at(std::int64_t index, std::int64_t block, std::int64_t length) {
  return {index * block, std::min((index + 1) * block, length)};
}

inline bool visible(const Lesson& lesson, std::int64_t row, std::int64_t col) {
  return !lesson.causal || col <= row + lesson.s_kv - lesson.s_q;
}
/// A block none of whose pairs is visible is never touched.
inline bool any_visible(const Lesson& lesson, const Block& rows, const Block& keys) {
  return visible(lesson, rows.end - 1, keys.begin);
}

/// Copies between slow and fast memory; every float that crosses is counted.
class Door {
 public:
  explicit Door(Work& work) : work_(work) {}
  std::vector<float> load(const float* slow, std::int64_t count) {
    work_.bytes_read += count * static_cast<std::int64_t>(sizeof(float));
    return std::vector<float>(slow, slow + count);
  }
  void store(const std::vector<float>& fast, float* slow) {
    work_.bytes_written += static_cast<std::int64_t>(fast.size() * sizeof(float));
    std::copy(fast.begin(), fast.end(), slow);
  }

 private:
  Work& work_;
};

/// e^x, counted.
inline float counted_exp(float x, Work& work) {
  ++work.exponentials;
  return std::exp(x);
}

/// One block of S = scale Q K^T with hidden pairs at -inf, (rows, keys).
inline std::vector<float> score_block(const Lesson& lesson, const Block& rows, const Block& keys,
                                      const std::vector<float>& q, const std::vector<float>& k) {
  std::vector<float> s(static_cast<std::size_t>(rows.size() * keys.size()), no_key);
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    for (std::int64_t j = 0; j < keys.size(); ++j) {
      if (!visible(lesson, rows.begin + i, keys.begin + j)) continue;
      float dot = 0.0f;
      for (std::int64_t c = 0; c < lesson.d; ++c) dot += q[i * lesson.d + c] * k[j * lesson.d + c];
      s[i * keys.size() + j] = lesson.scale * dot;
    }
  }
  return s;
}

}  // namespace onepass::reference
