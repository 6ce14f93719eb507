// What one core can do at most, measured in this process: the yardstick of every speed we state.
#pragma once

#include "onepass/plan.h"
#include "onepass/tensor.h"

namespace onepass::cpu {

/// FLOP/s of one thread in nothing but the multiply-adds that a dtype's kernel is made of (float32
/// FMA for float32 and widened 16-bit floats, float64 FMA, bfloat16 dot products), the best of
/// several runs of a few milliseconds. 0 where the instruction set has no such kernel.
double peak_flops(Isa isa, DType dtype);

/// Bytes/s that `threads` threads read together from a buffer of `bytes` bytes, each its own part,
/// the best of several passes: from memory when the buffer is larger than every cache.
double read_bandwidth(std::int64_t bytes, int threads = 1);

}  // namespace onepass::cpu
