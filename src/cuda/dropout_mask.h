#pragma once

#include "onepass/attention.h"

namespace onepass::cuda {

/// The pairs that dropout keeps, into a checked mask (b, h_q, s_q, s_kv) of bytes in the memory of
/// a GPU, in order on `stream`: the same bytes as cpu::dropout_mask.
Status dropout_mask(const TensorView& mask, const Dropout& dropout, void* stream);

}  // namespace onepass::cuda
