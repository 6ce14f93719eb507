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

#if defined(__x86_64__)
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif
namespace onepass::cpu::avx2 {
#include "cpu/portable.inl"

#include "cpu/avx2.inl"

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
}  // namespace onepass::cpu::avx2
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace onepass::cpu {
const Target* target_avx2() { return &avx2::target; }
}  // namespace onepass::cpu
#else
namespace onepass::cpu {
const Target* target_avx2() { return nullptr; }
}  // namespace onepass::cpu
#endif
