// Whether two tensors share memory.
#pragma once

#include <cstdint>

#include "onepass/tensor.h"

namespace onepass {

/// Addresses from a tensor's first byte to the one after its last; empty where it has no element.
struct ByteRange {
  std::uintptr_t begin = 0, end = 0;
};
ByteRange byte_range(const TensorView& view);

inline bool meet(const ByteRange& a, const ByteRange& b) {
  return a.begin < b.end && b.begin < a.end;
}

/// True when some byte belongs to an element of both. Slices of one buffer that only interleave
/// (a fused q, k, v) do not overlap. Exact when the last dims are dense; where they are strided,
/// the gaps between their elements count as theirs.
bool overlap(const TensorView& a, const TensorView& b);

}  // namespace onepass
