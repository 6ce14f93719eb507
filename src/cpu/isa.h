// Which instruction sets this machine's CPU and operating system offer.
#pragma once

#include <vector>

#include "onepass/plan.h"

namespace onepass::cpu {

/// In rising order of preference; baseline is always there.
std::vector<Isa> detected_isas();

}  // namespace onepass::cpu
