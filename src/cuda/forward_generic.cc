// cuda.forward.generic: one kernel text for every forward call that has one length for all.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/rounding.h"
#include "cuda/forward_call.h"
#include "cuda/forward_kernels.h"
#include "cuda/kernel.h"
#include "cuda/kernel_text.h"

namespace onepass::cuda {
namespace {

constexpr std::int64_t tile_rows = 16, tile_keys = 32;  // as in kernels/forward_generic.cuh
constexpr std::uint32_t threads = 128;
constexpr std::int64_t most_blocks = 1 << 30;

void layout(const Problem&, Plan& plan) {
  plan.tile = {tile_rows, tile_keys};
  plan.threads = 1;
}

std::string source(const Problem& p) {
  return forward_preamble(p, {}, narrow_texts(p)) + kernel_text("cuda/kernels/forward_generic.cuh");
}

std::vector<KernelSource> sources(const Problem& p) {
  return {{"forward_generic", forward_configuration(p, {}, narrow_texts(p)), source}};
}

Status launch(const Problem& p, const Plan& plan, const Exec& exec) {
  const std::int64_t tiles = p.b * p.h_q * divide_up(p.s_q, tile_rows);
  if (tiles == 0) return {};
  const Grid grid{.blocks = static_cast<std::uint32_t>(std::min(tiles, most_blocks)),
                  .threads = threads};
  return launch_kernel(*plan.kernels[0], p.device.index, grid, exec.stream,
                       forward_call_bytes(p).data());
}

}  // namespace

constexpr KernelRow forward_generic{
    "cuda.forward.generic", Device::Kind::cuda, refuse_forward, layout, launch, sources};

}  // namespace onepass::cuda
