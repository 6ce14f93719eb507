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

namespace onepass::cpu {
namespace baseline {
#include "cpu/portable.inl"

#include "cpu/baseline.inl"

#include "lang/evaluate.inl"

#include "cpu/target.inl"
}  // namespace baseline

const Target* target_baseline() { return &baseline::target; }

}  // namespace onepass::cpu
