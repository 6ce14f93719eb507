#include "cuda/backward_kernels.h"

namespace onepass::cuda {

std::span<const KernelRow> backward_kernels() {
  static const KernelRow rows[] = {sm80_backward_row, sm80_parts_backward_row,
                                   generic_backward_row};
  return rows;
}

}  // namespace onepass::cuda
