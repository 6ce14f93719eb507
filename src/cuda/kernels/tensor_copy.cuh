// Copies of boxes of tensors into shared memory by sm_90's copy engine (TMA), and the barriers
// (mbarrier) by which they are waited for, as PTX's manual describes them.
#pragma once

namespace {

// A CUtensorMap: what the driver makes of a tensor's address, shape and strides.
struct alignas(64) TensorMap {
  unsigned long long opaque[16];
};

// In shared memory, 8 bytes each.
__device__ void make_barrier(unsigned barrier, int arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
// What was made so far is seen by the copy engine.
__device__ void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ void arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// Arrives, and makes the phase wait for so many bytes of copies.
__device__ void expect_bytes(unsigned barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
// Until the barrier's phase of this parity is over.
__device__ void wait(unsigned barrier, unsigned parity) {
  asm volatile(
      "{\n.reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
      "@!done bra again;\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

// A box of a (b, h, s, d) tensor; what lies beyond the tensor becomes 0.
__device__ void copy_box(unsigned to, const TensorMap& map, int d, int s, int h, int b,
                         unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(to),
      "l"(&map), "r"(d), "r"(s), "r"(h), "r"(b), "r"(barrier)
      : "memory");
}

// A ring of stages in shared memory: where its next user stands, and the parity of its turn.
template <int stages>
struct Ring {
  int stage = 0;
  unsigned parity = 0;
  __device__ void next() {
    if (++stage == stages) stage = 0, parity ^= 1;
  }
};

}  // namespace
