// The products of a kernel on Hopper as text: an instruction of wgmma names its shape and each of
// its registers, so that those of a call are written for it.
#pragma once

#include <cstdint>
#include <string>

#include "onepass/tensor.h"

namespace onepass::cuda {

/// A (64, 16) times B (16, columns), added to D (64, columns) in float32.
struct Wgmma {
  const char* name;      // of the function
  DType dtype;           // of A and B, bfloat16 or float16
  std::int64_t columns;  // a multiple of 8, up to 256
  bool a_in_registers;   // as mma's A; else in shared memory, rows of 16 neighbours
  bool b_by_rows;        // B's rows have neighbours in memory; else its columns have
};

/// `__device__ void name(float (&d)[columns / 8][4], a, b)` for kernels/wgmma.cuh; where A lies in
/// shared memory a template that adds to D or, given 0, begins it.
std::string wgmma_text(const Wgmma& product);

}  // namespace onepass::cuda
