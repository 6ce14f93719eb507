// Whether two tensors share memory.
#pragma once

#include "onepass/tensor.h"

namespace onepass {

/// True when some byte belongs to an element of both. Slices of one buffer that only interleave
/// (a fused q, k, v) do not overlap. Exact when the last dims are dense; where they are strided,
/// the gaps between their elements count as theirs.
bool overlap(const TensorView& a, const TensorView& b);

}  // namespace onepass
