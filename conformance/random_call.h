// One problem drawn from a seed.
#pragma once

#include <cstdint>

#include "conformance/backward_call.h"

namespace onepass::conformance {

/// Any shape, lengths, dtype, layouts, mask, score, groups, positions, sinks and dropout, with a
/// gradient of the output and often one of lse. The same on every machine.
BackwardCall random_call(std::uint32_t seed);

}  // namespace onepass::conformance
