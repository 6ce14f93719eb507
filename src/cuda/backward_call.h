// What all kernels of a GPU backward are given, and what stands before their texts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cuda/call_parts.h"
#include "cuda/kernel.h"

namespace onepass::cuda {

/// Places where the score reads arrays whose gradient is asked for.
inline constexpr std::size_t most_backward_terms = 16;

/// Where the workspace of a backward keeps what, in bytes.
struct BackwardWorkspace {
  std::int64_t stat_rows = 0;  // rows of a head in the statistics: s_q rounded up
  std::int64_t lse = 0, delta = 0;
  std::int64_t bytes = 0;
};
BackwardWorkspace backward_workspace(const Problem& problem);

/// Tiles that a tensor-core kernel may leave to the kernels of cuda.backward.generic: keys and rows
/// of a tile, where its flags lie, and how many heads it takes at a time.
struct Again {
  std::int64_t tile_keys = 0, tile_rows = 0;
  std::byte* flags = nullptr;  // again_bytes() of device memory
  std::int64_t section_heads = 1;
};
std::int64_t again_bytes(const Problem& problem, const Again& again);

/// The bytes of Call in kernels/backward_call.cuh.
std::vector<std::byte> backward_call_bytes(const Problem& problem, void* workspace,
                                           const Again& again = {});

/// Everything before a kernel's own text: types, head dims and generated texts, whose integers are
/// 32 bits wide or 64.
std::string backward_preamble(const Problem& problem, const Constants& constants,
                              bool int32 = false);

/// What the preamble is made from, in few bytes: KernelSource::configuration.
std::string backward_configuration(const Problem& problem, const Constants& constants,
                                   bool int32 = false);

/// A reason why no GPU kernel takes the backward; empty = none.
std::string refuse_backward(const Problem& problem, const Capabilities& capabilities);

/// Starts the kernels of a plan in their order, each with the bytes of its struct.
class BackwardLaunches {
 public:
  BackwardLaunches(const Plan& plan, int device, void* stream)
      : next_(plan.kernels.begin()), device_(device), stream_(stream) {}
  /// `blocks` is cut to what a grid holds; 0 = nothing to do.
  Status start(std::int64_t blocks, const void* call, std::int64_t threads = 256,
               std::int64_t shared_bytes = 0);

 private:
  std::vector<const Kernel*>::const_iterator next_;
  int device_;
  void* stream_;
};

}  // namespace onepass::cuda
