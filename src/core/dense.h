// Whether a tensor's elements lie side by side in their order.
#pragma once

#include "onepass/tensor.h"

namespace onepass {

inline bool dense(const TensorView& view) {
  std::int64_t stride = 1;
  for (auto dim = static_cast<std::size_t>(view.rank); dim-- > 0;) {
    if (view.shape[dim] != 1 && view.strides[dim] != stride) return false;
    stride *= view.shape[dim];
  }
  return true;
}

}  // namespace onepass
