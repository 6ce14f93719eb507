// What sm_90a's warpgroups (4 warps) do on the tensor cores, as PTX's manual names it: wgmma, whose
// A (64, 16) lies in shared memory or in registers as mma's, and whose B lies in shared memory. The
// products themselves are made for the call (wgmma_text.h): each shape has an instruction of its
// own.
//
// Matrices in shared memory are columns of 64 elements (128 bytes) a row, one after the other, as
// tensor maps store them: piece p of 16 bytes of row r lies at piece p ^ (r % 8).
#pragma once

namespace {

using Matrix = unsigned long long;  // its descriptor

constexpr int slab_width = 64, slab_row_bytes = 128;

// From a multiple of 1024 bytes on. `slab_rows`: those of a slab, which parts 64 columns from the
// next 64.
__device__ Matrix matrix_at(unsigned address, int slab_rows) {
  constexpr Matrix swizzled = 1ull << 62, eight_rows = 1024 / 16;
  const unsigned slab = slab_rows * slab_row_bytes;
  return swizzled | eight_rows << 32 | Matrix(slab / 16) << 16 | (address & 0x3ffff) / 16;
}
__device__ Matrix moved(Matrix x, int bytes) { return x + Matrix(bytes / 16); }

// Orders the registers of products before their use by wgmma.
__device__ void fence_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Until at most `pending` groups of products are under way.
template <int pending>
__device__ void wait_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

// Keeps the compiler from moving the use of registers over a wait or a fence.
template <int blocks>
__device__ void pin(float (&x)[blocks][4]) {
#pragma unroll
  for (int i = 0; i < 4 * blocks; ++i) asm volatile("" : "+f"(x[i / 4][i % 4])::"memory");
}
template <int blocks>
__device__ void pin(unsigned (&x)[blocks][4]) {
#pragma unroll
  for (int i = 0; i < 4 * blocks; ++i) asm volatile("" : "+r"(x[i / 4][i % 4])::"memory");
}

// Of all warps of a warpgroup.
template <int count>
__device__ void more_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}
template <int count>
__device__ void fewer_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}

}  // namespace
