// cuda.forward.sm80: the tensor-core kernel of forward calls.
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/rounding.h"
#include "cuda/forward_call.h"
#include "cuda/forward_kernels.h"
#include "cuda/kernel.h"
#include "cuda/kernel_text.h"

namespace onepass::cuda {
namespace {

constexpr std::int64_t largest_head_dim = 256;
constexpr std::int64_t most_length = std::numeric_limits<std::int32_t>::max() - 1024;
constexpr std::int64_t most_blocks = std::numeric_limits<std::int32_t>::max();

struct Shape {
  Tile tile;
  std::int64_t warps;
};

// Registers bound the tiles: 32 rows a warp hold 4 numbers a key and d_v sums for each 8 lanes;
// code for single pairs needs some, and so do rows whose pieces do not divide the threads. Beyond
// 128 columns of o a warp has 16 rows. Weights in float32 stand twice in registers, in two halves.
Shape shape_of(const Problem& p) {
  const std::int64_t most = std::max(p.d, p.d_v);
  const bool pairs = p.has_score || p.dropout.p > 0.0 || (p.has_mask && !only_compares(p.mask));
  const bool narrow = pairs || (most > 64 && std::min(p.d, p.d_v) <= 112);
  if (p.dtype == DType::float32) {
    return {{most <= 128 ? 128 : 64, most > 128 || narrow ? 16 : 32}, 4};
  }
  if (most <= 64) return {{128, pairs ? 64 : 128}, 4};
  if (most <= 128) return {{128, narrow ? 32 : 64}, 4};
  return {{64, 64}, 4};
}

std::int64_t padded(std::int64_t head_dim) { return round_up(head_dim, 16); }

// Tiles of q, k and v.
std::int64_t shared_bytes(const Problem& p) {
  const Tile tile = shape_of(p).tile;
  return size_bytes(p.dtype) *
         (tile.rows * padded(p.d) + tile.keys * (padded(p.d) + padded(p.d_v)));
}

std::string refuse(const Problem& p, const Capabilities& capabilities) {
  std::string reason = refuse_forward(p, capabilities);
  if (!reason.empty()) return reason;
  if (std::min(p.d, p.d_v) < 1 || std::max(p.d, p.d_v) > largest_head_dim) {
    return "d, d_v: " + std::to_string(p.d) + ", " + std::to_string(p.d_v) +
           "; this kernel takes 1 to 256";
  }
  if (static_cast<float>(p.scale) == 0.0F) {
    return "scale: 0 in float32; this kernel takes others";
  }
  if (std::max(p.s_q, p.s_kv) > most_length) return "s_q, s_kv: beyond 2^31 - 1024";
  if (p.b * p.h_q * divide_up(p.s_q, shape_of(p).tile.rows) > most_blocks) {
    return "b, h_q, s_q: more tiles than the 2^31 - 1 blocks of a grid";
  }
  reason = refuse_inputs(p);
  if (!reason.empty()) return reason;
  if (shared_bytes(p) > capabilities.shared_bytes) {
    return "device: " + std::to_string(capabilities.shared_bytes) +
           " bytes of shared memory a block; this kernel takes " + std::to_string(shared_bytes(p));
  }
  return {};
}

void layout(const Problem& p, Plan& plan) {
  plan.tile = shape_of(p).tile;
  plan.threads = 1;
}

Constants constants_of(const Problem& p) {
  const auto [tile, warps] = shape_of(p);
  return {{"tile_rows", tile.rows},
          {"tile_keys", tile.keys},
          {"warps", warps},
          {"blocks_per_sm", std::max(p.d, p.d_v) <= 128 ? 2 : 1},
          {"stores_pairs", stores_pairs(p.o)},
          {"stores_blocks", stores_blocks(p.o)}};
}

std::string source(const Problem& p) {
  return forward_preamble(p, constants_of(p), narrow_texts(p)) +
         kernel_text("cuda/kernels/forward_sm80.cuh");
}

std::vector<KernelSource> sources(const Problem& p) {
  return {{"forward_sm80", forward_configuration(p, constants_of(p), narrow_texts(p)), source}};
}

Status launch(const Problem& p, const Plan& plan, const Exec& exec) {
  const auto [tile, warps] = shape_of(p);
  const std::int64_t tiles = p.b * p.h_q * divide_up(p.s_q, tile.rows);
  if (tiles == 0) return {};
  const Grid grid{.blocks = static_cast<std::uint32_t>(tiles),
                  .threads = static_cast<std::uint32_t>(32 * warps),
                  .shared_bytes = static_cast<std::uint32_t>(shared_bytes(p))};
  return launch_kernel(*plan.kernels[0], p.device.index, grid, exec.stream,
                       forward_call_bytes(p, section_heads(p)).data());
}

}  // namespace

constexpr KernelRow forward_sm80{
    "cuda.forward.sm80", Device::Kind::cuda, refuse, layout, launch, sources};

}  // namespace onepass::cuda
