// Validation of a backward.
#pragma once

#include "core/problem.h"

namespace onepass {

/// As validate, for attention_backward. Reads no memory.
Result<Problem> validate_backward(const TensorView& q, const TensorView& k, const TensorView& v,
                                  const Backward& backward, const Attention& options);

}  // namespace onepass
