// Which instruction sets this machine's CPU and operating system offer.
#pragma once

#include <vector>

#include "onepass/plan.h"

namespace onepass::cpu {

/// In rising order of preference; baseline is always there.
std::vector<Isa> detected_isas();

/// False on Intel, where the 512-bit bfloat16 dot product starts every other cycle: half the rate
/// of the float32 multiply-adds that widened operands take (measured on Emerald Rapids: 87 against
/// 172 GFLOP/s; Zen 5: 512 against 258). There it has to be asked for with ONEPASS_ISA.
bool bf16_dot_is_fast();

}  // namespace onepass::cpu
