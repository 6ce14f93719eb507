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

#include "cpu/target.inl"
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
