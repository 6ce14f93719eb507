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

#include "cpu/forward.inl"

#include "cpu/decode.inl"

#include "cpu/backward.inl"

constexpr ForwardKernels float32 = forward_kernels_of<F32>();
constexpr ForwardKernels float64 = forward_kernels_of<F64>();
constexpr DecodeKernels decode_float32 = decode_kernels_of<F32>();
constexpr DecodeKernels decode_float64 = decode_kernels_of<F64>();
constexpr BackwardKernels backward_float32 = backward_kernels_of<F32>();
constexpr BackwardKernels backward_float64 = backward_kernels_of<F64>();
constexpr Target target{.float32 = &float32,
                        .float64 = &float64,
                        .decode_float32 = &decode_float32,
                        .decode_float64 = &decode_float64,
                        .backward_float32 = &backward_float32,
                        .backward_float64 = &backward_float64};
}  // namespace onepass::cpu::neon

namespace onepass::cpu {
const Target* target_neon() { return &neon::target; }
}  // namespace onepass::cpu
#else
namespace onepass::cpu {
const Target* target_neon() { return nullptr; }
}  // namespace onepass::cpu
#endif
