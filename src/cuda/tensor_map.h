// What Hopper's copy engine is told of a tensor.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "onepass/status.h"
#include "onepass/tensor.h"

namespace onepass::cuda {

/// A CUtensorMap; as in kernels/tensor_copy.cuh.
struct alignas(64) TensorMap {
  std::array<std::byte, 128> opaque;
};

/// Of a 16-bit (b, s, h, d) tensor with contiguous rows at multiples of 16 bytes: its boxes are 64
/// columns of `rows` (up to 256) rows, stored as kernels/wgmma.cuh reads them.
Status make_tensor_map(const TensorView& x, std::int64_t rows, TensorMap& map);

}  // namespace onepass::cuda
