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
constexpr std::int64_t copy_bytes = 16;  // of one asynchronous copy
constexpr std::int64_t most_length = std::numeric_limits<std::int32_t>::max() - 1024;
constexpr std::int64_t most_blocks = std::numeric_limits<std::int32_t>::max();
// Heads whose keys and values stay in the L2 cache together are worked on together.
constexpr std::int64_t section_bytes = 32 << 20;

struct Shape {
  Tile tile;
  std::int64_t warps;
};

// Sums and comparisons alone, which become limits of the keys: boundary tiles need no more code.
bool only_compares(const lang::Program& mask) {
  for (const lang::Node& node : mask.nodes) {
    switch (node.op) {
      case lang::Op::constant:
      case lang::Op::parameter:
      case lang::Op::name:
      case lang::Op::negate:
      case lang::Op::add:
      case lang::Op::subtract:
      case lang::Op::logical_and:
      case lang::Op::less:
      case lang::Op::less_equal:
        break;
      default:
        return false;
    }
  }
  return true;
}

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

// Empty, or why rows of the tensor cannot be copied 16 bytes at a time.
std::string refuse_rows(const char* name, const TensorView& x) {
  const auto found = [&](const std::string& what) {
    return std::string(name) + ": " + what + "; this kernel copies 16 bytes at a time";
  };
  if (x.strides[3] != 1 && x.shape[3] > 1) return found("its last dim is not contiguous");
  if (reinterpret_cast<std::uintptr_t>(x.data) % copy_bytes != 0) {
    return found("its address is no multiple of 16");
  }
  for (int i = 0; i < 3; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (x.shape[at] > 1 && x.strides[at] * size_bytes(x.dtype) % copy_bytes != 0) {
      return found("its stride " + std::to_string(x.strides[at]) + " is no multiple of 16 bytes");
    }
  }
  return {};
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
  const std::array<std::pair<const char*, const TensorView*>, 3> inputs = {
      {{"q", &p.q}, {"k", &p.k}, {"v", &p.v}}};
  for (const auto& [name, view] : inputs) {
    reason = refuse_rows(name, *view);
    if (!reason.empty()) return reason;
  }
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

// Two neighbours of o can be stored at once.
bool stores_pairs(const TensorView& o) {
  const std::int64_t bytes = 2 * size_bytes(o.dtype);
  bool even = o.strides[3] == 1 && reinterpret_cast<std::uintptr_t>(o.data) % bytes == 0;
  for (std::size_t i = 0; i < 3; ++i) even = even && (o.shape[i] == 1 || o.strides[i] % 2 == 0);
  return even;
}

Constants constants_of(const Problem& p) {
  const auto [tile, warps] = shape_of(p);
  return {{"tile_rows", tile.rows},
          {"tile_keys", tile.keys},
          {"warps", warps},
          {"blocks_per_sm", std::max(p.d, p.d_v) <= 128 ? 2 : 1},
          {"stores_pairs", stores_pairs(p.o)}};
}

std::string source(const Problem& p) {
  return forward_preamble(p, constants_of(p), narrow_texts(p)) +
         kernel_text("cuda/kernels/forward_sm80.cuh");
}

std::vector<KernelSource> sources(const Problem& p) {
  return {{"forward_sm80", forward_configuration(p, constants_of(p), narrow_texts(p)), source}};
}

std::int64_t section_heads(const Problem& p) {
  const std::int64_t bytes = p.s_kv * (p.d + p.d_v) * size_bytes(p.dtype);
  return p.group * std::max<std::int64_t>(1, section_bytes / std::max<std::int64_t>(1, bytes));
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
