// Every kernel of an instruction set over its vectors F32 and F64. Included inside its namespace.
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
