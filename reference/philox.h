// Dropout's random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as
// easy as 1, 2, 3", SC 2011) and the contract that gives each (query, key) pair its word.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace onepass::reference {

/// Ten rounds over one counter.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key);

struct Dropout {
  double p = 0.0;
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;
  std::int64_t row0 = 0;  // where this chunk lies in a longer problem; multiples of 16
  std::int64_t col0 = 0;
};

/// True when the weight of this pair is kept.
bool kept(const Dropout& dropout, std::int64_t b, std::int64_t h, std::int64_t row,
          std::int64_t col);

/// The whole mask, (b, h, s_q, s_kv) in row-major order, 1 = kept.
std::vector<std::uint8_t> dropout_mask(const Dropout& dropout, std::int64_t b, std::int64_t h,
                                       std::int64_t s_q, std::int64_t s_kv);

}  // namespace onepass::reference
