// Sequences of different lengths: packed one after the other, or partly used.
#pragma once

#include <cstdint>

#include "core/problem.h"
#include "onepass/status.h"
#include "onepass/tensor.h"

namespace onepass {

/// A packed tensor, such as (t, h, d), as the one (1, t, h, d) that all sequences share: stride 0
/// along b, so that row i of any sequence lies at its first row + i.
TensorView shared_by_sequences(const TensorView& packed);

/// b + 1 of an array like cu_seqlens, checked for rank and dtype; nothing is read.
Status check_cu_seqlens(std::string_view argument, const TensorView& view);

/// An int32 or int64 array of shape (b).
Status check_per_sequence(std::string_view argument, const TensorView& view, std::int64_t b);

/// Reads cu_seqlens_q, cu_seqlens_k and seqused_k: every sequence lies inside the tensors.
Status check_lengths(const Problem& problem);

}  // namespace onepass
