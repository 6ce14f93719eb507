#include "cuda/dropout_mask.h"

#include <algorithm>
#include <cstdint>

#include "cuda/kernel.h"
#include "cuda/kernel_text.h"

namespace onepass::cuda {
namespace {

#include "shared/philox.h"

constexpr std::uint32_t threads = 256;
constexpr std::int64_t blocks_per_multiprocessor = 8;

// One for every call.
const KernelSource mask_source{"dropout_mask", {}, [](const Problem&) {
                                 return kernel_text("cuda/kernels/dropout_mask.cuh");
                               }};

// As in kernels/dropout_mask.cuh.
struct DropoutMaskCall {
  void* mask;
  std::int64_t shape[4], strides[4];
  std::uint64_t seed, offset, threshold;
  std::int64_t row0, col0;
};

}  // namespace

Status dropout_mask(const TensorView& mask, const Dropout& dropout, void* stream) {
  const Result<Capabilities> capabilities = cuda_capabilities(mask.device.index);
  if (!capabilities.ok()) return capabilities.status();
  const Result<const Kernel*> kernel = prepare_kernel(mask_source, {}, capabilities.value());
  if (!kernel.ok()) return kernel.status();
  if (mask.elements() == 0) return {};

  DropoutMaskCall call{
      mask.data,    {},          {}, dropout.seed, dropout.offset, dropout_threshold(dropout.p),
      dropout.row0, dropout.col0};
  std::copy(mask.shape.begin(), mask.shape.end(), call.shape);
  std::copy(mask.strides.begin(), mask.strides.end(), call.strides);
  const std::int64_t pieces =
      mask.shape[0] * mask.shape[1] * ((mask.shape[2] + 15) / 16) * ((mask.shape[3] + 15) / 16);
  const std::int64_t most = capabilities.value().multiprocessors * blocks_per_multiprocessor;
  const Grid grid{.blocks = static_cast<std::uint32_t>(std::min(most, (pieces + 3) / 4)),
                  .threads = threads};
  return launch_kernel(*kernel.value(), mask.device.index, grid, stream, &call);
}

}  // namespace onepass::cuda
