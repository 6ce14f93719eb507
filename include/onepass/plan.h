// What a call will do, without doing it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "onepass/attention.h"

namespace onepass {

namespace cuda {
struct Kernel;
}

/// CPU instruction sets a kernel is compiled for, in rising order of preference.
enum class Isa : std::uint8_t { baseline, neon, avx2, avx512, avx512_bf16 };
const char* name(Isa isa);

/// What the planner may count on: plain data, so that any machine can be planned for on any other.
struct Capabilities {
  Device device;
  std::vector<Isa> isas;  // usable ones; ONEPASS_ISA narrows them to one family
  int threads = 1;
  // Of a GPU:
  int sm = 0;                     // compute capability, 90 = 9.0
  int multiprocessors = 0;        // SMs
  std::int64_t shared_bytes = 0;  // shared memory that one block may take
};

/// A GPU of this machine. Fails without a driver, a device of this number or compute
/// capability 8.0.
Result<Capabilities> cuda_capabilities(int device = 0);

/// This machine's CPU. Fails when ONEPASS_ISA names a set that is unknown or not here.
Result<Capabilities> cpu_capabilities(int threads = 0);

struct Refusal {
  std::string kernel;
  std::string reason;
};

struct Tile {
  std::int64_t rows = 0;  // queries per tile
  std::int64_t keys = 0;  // keys per tile
};

struct Plan {
  std::string kernel;
  Tile tile;
  std::int64_t splits = 1;  // parts of the key range computed apart and merged
  int threads = 1;
  std::int64_t workspace_bytes = 0;
  std::string reason;            // why this kernel
  std::vector<Refusal> refused;  // every other kernel, with its reason
  std::string problem_line;
  /// Of a GPU: the plan's compiled kernels, loaded on its device; empty before prepare().
  std::vector<const cuda::Kernel*> kernels;
};

/// Plans a call without touching memory: data pointers may be null.
Plan plan(const TensorView& q, const TensorView& k, const TensorView& v, const TensorView& o,
          const Attention& options = {}, int threads = 0);

/// Plans a call and compiles and loads its kernels, so that the call itself does neither, as it
/// must where a graph is captured. A kernel whose code spills registers makes way for the next.
/// On the CPU the same as plan(). Data pointers may be null.
Plan prepare(const TensorView& q, const TensorView& k, const TensorView& v, const TensorView& o,
             const Attention& options = {}, int threads = 0);

/// The plan as text: every kernel with yes or no and why, tiles, workspace.
std::string explain(const Plan& plan);

}  // namespace onepass
