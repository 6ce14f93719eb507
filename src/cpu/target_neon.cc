#include <cstddef>
#include <cstdint>
#include <utility>

#include "cpu/backward.h"
#include "cpu/backward_sizes.h"
#include "cpu/decode.h"
#include "cpu/forward.h"
#include "cpu/scopes.h"
#include "cpu/sequences.h"
#include "cpu/walk.h"
#include "lang/machine.h"

#if defined(__aarch64__)
#include <arm_neon.h>

namespace onepass::cpu::neon {
#include "cpu/portable.inl"

#include "cpu/neon.inl"

#include "lang/evaluate.inl"

#include "cpu/target.inl"
}  // namespace onepass::cpu::neon

namespace onepass::cpu {
const Target* target_neon() { return &neon::target; }
}  // namespace onepass::cpu
#else
namespace onepass::cpu {
const Target* target_neon() { return nullptr; }
}  // namespace onepass::cpu
#endif
