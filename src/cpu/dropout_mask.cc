// dropout_mask(): which pairs a call with this dropout keeps; docs/semantics.md has the contract.
#include <cstdint>

#include "core/check.h"
#include "onepass/backward.h"

namespace onepass {
namespace {

#include "shared/philox.h"

Status check_mask(const TensorView& mask, const Dropout& dropout) {
  const char* dims = "(b, h_q, s_q, s_kv)";
  if (Status s = check::tensor("mask", mask, 4, dims); !s.ok()) return s;
  if (Status s = check::dtype("mask", mask, {DType::boolean, DType::uint8}, "allocate it as bool");
      !s.ok()) {
    return s;
  }
  if (Status s = check::writable("mask", mask); !s.ok()) return s;
  if (Status s = check::memory("mask", mask); !s.ok()) return s;
  return check::dropout(dropout);
}

}  // namespace

void dropout_mask(const TensorView& mask, const Dropout& dropout) {
  if (Status s = check_mask(mask, dropout); !s.ok()) throw Error(s);
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

}  // namespace onepass
