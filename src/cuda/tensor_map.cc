#include "cuda/tensor_map.h"

#include "cuda/driver.h"

namespace onepass::cuda {
namespace {

// CUtensorMapDataType, -Interleave, -Swizzle, -L2promotion and -FloatOOBfill.
constexpr int map_float16 = 6, map_bfloat16 = 9;
constexpr int no_interleave = 0, swizzle_128 = 3, promote_256 = 3, fill_zeros = 0;
constexpr std::uint32_t columns = 64;

// Of a dim of size 1 the engine takes no step, but wants a stride that it likes.
std::uint64_t stride_bytes(const TensorView& x, std::size_t dim) {
  constexpr std::uint64_t any = 16;
  if (x.shape[dim] <= 1) return any;
  return static_cast<std::uint64_t>(x.strides[dim] * size_bytes(x.dtype));
}

}  // namespace

Status make_tensor_map(const TensorView& x, std::int64_t rows, TensorMap& map) {
  const Result<Driver>& driver = cuda::driver();
  if (!driver.ok()) return driver.status();
  // Dims from the innermost: d, s, h, b.
  const std::uint64_t sizes[] = {
      static_cast<std::uint64_t>(x.shape[3]), static_cast<std::uint64_t>(x.shape[1]),
      static_cast<std::uint64_t>(x.shape[2]), static_cast<std::uint64_t>(x.shape[0])};
  const std::uint64_t strides[] = {stride_bytes(x, 1), stride_bytes(x, 2), stride_bytes(x, 0)};
  const std::uint32_t box[] = {columns, static_cast<std::uint32_t>(rows), 1, 1};
  const std::uint32_t steps[] = {1, 1, 1, 1};
  return driver.value().check(
      driver.value().tensor_map_encode(
          &map, x.dtype == DType::bfloat16 ? map_bfloat16 : map_float16, 4, x.data, sizes, strides,
          box, steps, no_interleave, swizzle_128, promote_256, fill_zeros),
      "kernel: a tensor's map");
}

}  // namespace onepass::cuda
