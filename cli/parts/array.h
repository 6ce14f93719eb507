// An array that owns its memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "onepass/tensor.h"

namespace onepass::cli {

struct Array {
  std::shared_ptr<void> memory;
  TensorView view;
  template <class T>
  T* data() const {
    return static_cast<T*>(view.data);
  }
};

/// A contiguous array of zeros, aligned to 64 bytes. Throws Error when the sizes overflow or there
/// is no memory.
Array zeros(DType dtype, std::span<const std::int64_t> shape);

/// elements * bytes of one element, or -1 where a size is negative or the product does not fit.
std::int64_t checked_bytes(DType dtype, std::span<const std::int64_t> shape);

}  // namespace onepass::cli
