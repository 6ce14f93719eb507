#include "cpu/dropout_mask.h"

#include <cstdint>

namespace onepass::cpu {
namespace {

#include "shared/philox.h"

}  // namespace

void dropout_mask(const TensorView& mask, const Dropout& dropout) {
  const auto [b_size, h_size, rows, cols] = mask.shape;
  const std::uint64_t threshold = dropout_threshold(dropout.p);
  auto* const kept = static_cast<std::uint8_t*>(mask.data);
  for (std::int64_t b = 0; b < b_size; ++b) {
    for (std::int64_t h = 0; h < h_size; ++h) {
      const DropoutStream stream = dropout_stream(dropout.seed, dropout.offset, b, h);
      for (std::int64_t i = 0; i < rows; ++i) {
        const std::int64_t row = dropout.row0 + i;
        std::uint8_t* to = kept + b * mask.strides[0] + h * mask.strides[1] + i * mask.strides[2];
        for (std::int64_t j = 0; j < cols; ++j) {
          const std::int64_t col = dropout.col0 + j;
          const int word = static_cast<int>((row & 8) / 4 + (col & 8) / 8);
          to[j * mask.strides[3]] = dropout_words(stream, row, col).word[word] >= threshold;
        }
      }
    }
  }
}

}  // namespace onepass::cpu
