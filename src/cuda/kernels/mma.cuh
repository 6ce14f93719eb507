// What sm_80 and newer do in one warp or beside it, as PTX's manual names it: mma.m16n8k16 on the
// tensor cores, ldmatrix for its operands, cp.async for copies into shared memory.
//
// Fragments, for lane = 4 g + t (g < 8, t < 4), as the manual draws them:
//   A (16, 16)  a[0] = (g, 2t..), a[1] = (g + 8, 2t..), a[2] = (g, 2t + 8..), a[3] = (g + 8, 2t
//   + 8..) B (16, 8)   b0 = (2t.., g), b1 = (2t + 8.., g) C (16, 8)   c[0], c[1] = (g, 2t..), c[2],
//   c[3] = (g + 8, 2t..)
// C, rounded and in pairs, is A of the next product: two neighbouring C make one A.
// The element types are those of the expressions' prelude.
#pragma once

namespace {

using onepass_text::Bfloat16;
using onepass_text::Float16;

// Address of shared memory as PTX takes it.
__device__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

// c += a b
__device__ void multiply(Bfloat16, float (&c)[4], const unsigned (&a)[4], unsigned b0,
                         unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ void multiply(Float16, float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Two floats rounded into one register, the first in its low half.
__device__ unsigned pack(Bfloat16, float low, float high) {
  unsigned both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
__device__ unsigned pack(Float16, float low, float high) {
  unsigned both;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}

// Four 8 x 8 matrices of 16-bit elements: lane 8 i + j gives the address of row j of matrix i. Of
// matrix i a lane gets elements (g, 2t) and (g, 2t + 1), transposed (2t, g) and (2t + 1, g).
__device__ void load_matrices(unsigned (&to)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address));
}
__device__ void load_transposed(unsigned (&to)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address));
}

// 16 bytes to shared memory, of which those from `bytes` on become 0; both addresses are multiples
// of 16.
__device__ void copy_async(unsigned to, const void* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
               : "memory");
}
__device__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Until at most `pending` of this thread's commits are under way.
template <int pending>
__device__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

// 2^x; 0 for -inf.
__device__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace
