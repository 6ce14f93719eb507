#include "reference/philox.h"

namespace onepass::reference {
namespace {

std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
std::uint32_t high(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {high(product1) ^ counter[1] ^ key[0], low(product1),
               high(product0) ^ counter[3] ^ key[1], low(product0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

bool kept(const Dropout& dropout, std::int64_t b, std::int64_t h, std::int64_t row,
          std::int64_t col) {
  const auto y = static_cast<std::uint64_t>(row + dropout.row0);
  const auto x = static_cast<std::uint64_t>(col + dropout.col0);
  const std::uint64_t place =
      static_cast<std::uint64_t>(h) + (static_cast<std::uint64_t>(b) << 32) + dropout.offset;
  const std::uint64_t bit3 = 8;
  const auto words = philox({low(y & ~bit3), low(x & ~bit3), low(place), high(place)},
                            {low(dropout.seed), high(dropout.seed)});
  const std::uint32_t word = words[2 * ((y & bit3) != 0) + ((x & bit3) != 0)];
  return static_cast<double>(word) >= dropout.p * 4294967296.0;
}

std::vector<std::uint8_t> dropout_mask(const Dropout& dropout, std::int64_t b, std::int64_t h,
                                       std::int64_t s_q, std::int64_t s_kv) {
  std::vector<std::uint8_t> mask;
  for (std::int64_t batch = 0; batch < b; ++batch) {
    for (std::int64_t head = 0; head < h; ++head) {
      for (std::int64_t row = 0; row < s_q; ++row) {
        for (std::int64_t col = 0; col < s_kv; ++col) {
          mask.push_back(kept(dropout, batch, head, row, col));
        }
      }
    }
  }
  return mask;
}

}  // namespace onepass::reference
