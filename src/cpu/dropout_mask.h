#pragma once

#include "onepass/attention.h"

namespace onepass::cpu {

/// The pairs that dropout keeps, into a checked mask (b, h_q, s_q, s_kv) of bytes.
void dropout_mask(const TensorView& mask, const Dropout& dropout);

}  // namespace onepass::cpu
