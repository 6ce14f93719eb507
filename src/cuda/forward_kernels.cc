#include "cuda/forward_kernels.h"

namespace onepass::cuda {

std::span<const KernelRow> forward_kernels() {
  static const KernelRow rows[] = {forward_sm90, forward_sm80, forward_generic};
  return rows;
}

}  // namespace onepass::cuda
