// Which kernels an instruction set has for a dtype.
#pragma once

#include "cpu/forward.h"
#include "onepass/plan.h"

namespace onepass::cpu {

/// Null where there are none; 16-bit floats are widened to float32 where there are no pairs for
/// them.
const ForwardKernels* forward_kernels(Isa isa, DType dtype);

/// The same for decoding; 16-bit floats are widened to float32.
const DecodeKernels* decode_kernels(Isa isa, DType dtype);
/// Null where there are none; 16-bit floats are widened to float32.
const BackwardKernels* backward_kernels(Isa isa, DType dtype);

}  // namespace onepass::cpu
