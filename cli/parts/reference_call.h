// A call as the float64 reference takes it.
#pragma once

#include "onepass/attention.h"
#include "reference/attention.h"

namespace onepass::cli {

reference::Tensor reference_tensor(const TensorView& view);
reference::Options reference_options(const Attention& options);

}  // namespace onepass::cli
