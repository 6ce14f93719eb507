// Products of float32 matrices in float32 accuracy on the tensor cores, which multiply TF32,
// numbers of 11 significant bits: each x is high + low of 11 bits each, and of the four products of
// two such sums the smallest is left out (Ootomo & Yokota 2022), about 2^-22 of |a b|.
//
// mma.m16n8k8's fragments, for lane = 4 g + t: those of mma.cuh with one float32 where that has a
// pair:
//   A (16, 8)  a[0] = (g, t), a[1] = (g + 8, t), a[2] = (g, t + 4), a[3] = (g + 8, t + 4)
//   B (8, 8)   b0 = (t, g), b1 = (t + 4, g)
//   C (16, 8)  c[0], c[1] = (g, 2t..), c[2], c[3] = (g + 8, 2t..)
// so that ldmatrix gives A and B of matrices whose rows are what is multiplied along.
#pragma once
#include "cuda/kernels/mma.cuh"

namespace {

// The bits of x's upper half, rounded. The tensor cores leave out a low half's last bits.
__device__ unsigned high_half(unsigned x) { return (x + 0x1000u) & 0xffffe000u; }
__device__ unsigned low_half(unsigned x) {
  return __float_as_uint(__uint_as_float(x) - __uint_as_float(high_half(x)));
}

__device__ void multiply_tf32(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// c += a b
__device__ void multiply(float, float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  unsigned high[4], low[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) high[i] = high_half(a[i]), low[i] = low_half(a[i]);
  multiply_tf32(c, low, high_half(b0), high_half(b1));
  multiply_tf32(c, high, low_half(b0), low_half(b1));
  multiply_tf32(c, high, high_half(b0), high_half(b1));
}

__device__ unsigned load_shared(unsigned address) {
  unsigned x;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(x) : "r"(address));
  return x;
}

}  // namespace
