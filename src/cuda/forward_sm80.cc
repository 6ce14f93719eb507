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

constexpr std::int64_t largest_head_dim = 576, largest_in_float32 = 256;
constexpr std::int64_t piece_width = 64;      // as in kernels/forward_products.cuh
constexpr std::int64_t most_shared = 100864;  // of the smallest cards, less the kernel's own
constexpr std::int64_t most_length = std::numeric_limits<std::int32_t>::max() - 1024;
constexpr std::int64_t most_blocks = std::numeric_limits<std::int32_t>::max();

struct Shape {
  Tile tile;
  std::int64_t warps;
  std::int64_t ring = 0;  // pieces of 64 columns that keys come in; 0 = tiles of whole rows
};

std::int64_t padded(std::int64_t head_dim, std::int64_t step = 16) {
  return round_up(head_dim, step);
}

// Columns of o that one launch takes: what a block's registers hold.
std::int64_t columns_of(const Problem& p) {
  const std::int64_t launches = divide_up(p.d_v, p.d > 256 ? 288 : 256);
  return launches <= 1 ? p.d_v : padded(divide_up(p.d_v, launches));
}

// Where q's tile is wide, keys that come in pieces through what its rows leave.
Shape streamed_shape(std::int64_t d, std::int64_t columns) {
  const auto ring_at = [&](std::int64_t keys) {
    const std::int64_t left =
        most_shared - 2 * (64 * padded(d, piece_width) + keys * padded(columns));
    return std::min<std::int64_t>(4, left / (2 * keys * piece_width));
  };
  if (const std::int64_t ring = ring_at(64); ring >= 3) return {{64, 64}, 4, ring};
  return {{64, 32}, 4, ring_at(32)};
}

// Registers bound the tiles: 32 rows a warp hold 4 numbers a key and d_v sums for each 8 lanes;
// code for single pairs needs some, and so do rows whose pieces do not divide the threads. Beyond
// 128 columns of o a warp has 16 rows. Weights in float32 stand twice in registers, in two halves.
Shape shape_of(const Problem& p, std::int64_t columns) {
  const std::int64_t most = std::max(p.d, columns);
  if (p.d > 256) return streamed_shape(p.d, columns);
  const bool pairs = p.has_score || p.dropout.p > 0.0 || (p.has_mask && !only_compares(p.mask));
  const bool narrow = pairs || (most > 64 && std::min(p.d, columns) <= 112);
  if (p.dtype == DType::float32) {
    return {{most <= 128 ? 128 : 64, most > 128 || narrow ? 16 : 32}, 4};
  }
  if (most <= 64) return {{128, pairs ? 64 : 128}, 4};
  if (most <= 128) return {{128, narrow ? 32 : 64}, 4};
  return {{64, 64}, 4};
}

// Tiles of q, k and v.
std::int64_t shared_bytes(const Problem& p, std::int64_t columns) {
  const auto [tile, warps, ring] = shape_of(p, columns);
  const std::int64_t d = padded(p.d, ring > 0 ? piece_width : 16);
  const std::int64_t keys_columns = ring > 0 ? ring * piece_width : d;
  return size_bytes(p.dtype) * (tile.rows * d + tile.keys * (keys_columns + padded(columns)));
}

std::string refuse(const Problem& p, const Capabilities& capabilities) {
  std::string reason = refuse_forward(p, capabilities);
  if (!reason.empty()) return reason;
  const std::int64_t largest = p.dtype == DType::float32 ? largest_in_float32 : largest_head_dim;
  if (std::min(p.d, p.d_v) < 1 || std::max(p.d, p.d_v) > largest) {
    return "d, d_v: " + std::to_string(p.d) + ", " + std::to_string(p.d_v) +
           "; this kernel takes 1 to " + std::to_string(largest) + " in " + name(p.dtype);
  }
  if (static_cast<float>(p.scale) == 0.0F) {
    return "scale: 0 in float32; this kernel takes others";
  }
  if (std::max(p.s_q, p.s_kv) > most_length) return "s_q, s_kv: beyond 2^31 - 1024";
  if (p.b * p.h_q * divide_up(p.s_q, shape_of(p, columns_of(p)).tile.rows) > most_blocks) {
    return "b, h_q, s_q: more tiles than the 2^31 - 1 blocks of a grid";
  }
  reason = refuse_inputs(p);
  if (!reason.empty()) return reason;
  const std::int64_t taken = shared_bytes(p, columns_of(p));
  if (taken > capabilities.shared_bytes) {
    return "device: " + std::to_string(capabilities.shared_bytes) +
           " bytes of shared memory a block; this kernel takes " + std::to_string(taken);
  }
  return {};
}

void layout(const Problem& p, Plan& plan) {
  plan.tile = shape_of(p, columns_of(p)).tile;
  plan.threads = 1;
}

Constants constants_of(const Problem& p) {
  const auto [tile, warps, ring] = shape_of(p, p.d_v);
  return {{"tile_rows", tile.rows},
          {"tile_keys", tile.keys},
          {"warps", warps},
          {"ring", ring},
          {"blocks_per_sm", std::max(p.d, p.d_v) <= 128 || ring > 0 ? 2 : 1},
          {"stores_pairs", stores_pairs(p.o)},
          {"stores_blocks", stores_blocks(p.o)}};
}

std::string source(const Problem& p) {
  return forward_preamble(p, constants_of(p), narrow_texts(p)) +
         kernel_text("cuda/kernels/forward_sm80.cuh");
}

// The call with those columns of v and o alone.
Problem with_columns(const Problem& p, std::int64_t columns) {
  Problem out = p;
  out.d_v = out.v.shape[3] = out.o.shape[3] = columns;
  return out;
}
std::int64_t last_columns(const Problem& p) {
  return p.d_v - (divide_up(p.d_v, columns_of(p)) - 1) * columns_of(p);
}

// Of the first launches and of the last.
std::string first_source(const Problem& p) { return source(with_columns(p, columns_of(p))); }
std::string last_source(const Problem& p) { return source(with_columns(p, last_columns(p))); }

std::vector<KernelSource> sources(const Problem& p) {
  const auto one = [](const Problem& part, std::string (*text)(const Problem&)) {
    return KernelSource{"forward_sm80",
                        forward_configuration(part, constants_of(part), narrow_texts(part)), text};
  };
  if (columns_of(p) == p.d_v) return {one(p, source)};
  std::vector<KernelSource> all = {one(with_columns(p, columns_of(p)), first_source)};
  if (last_columns(p) != columns_of(p)) {
    all.push_back(one(with_columns(p, last_columns(p)), last_source));
  }
  return all;
}

Status launch(const Problem& p, const Plan& plan, const Exec& exec) {
  if (p.b * p.h_q * p.s_q == 0) return {};
  const std::int64_t step = columns_of(p);
  for (std::int64_t first = 0; first < p.d_v; first += step) {
    const std::int64_t columns = std::min(step, p.d_v - first);
    const Shape shape = shape_of(p, columns);
    const std::int64_t tiles = p.b * p.h_q * divide_up(p.s_q, shape.tile.rows);
    const Grid grid{.blocks = static_cast<std::uint32_t>(tiles),
                    .threads = static_cast<std::uint32_t>(32 * shape.warps),
                    .shared_bytes = static_cast<std::uint32_t>(shared_bytes(p, columns))};
    const Kernel& kernel = columns == step ? *plan.kernels.front() : *plan.kernels.back();
    const Status status = launch_kernel(kernel, p.device.index, grid, exec.stream,
                                        forward_call_bytes(p, section_heads(p), first).data());
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace

constexpr KernelRow forward_sm80{
    "cuda.forward.sm80", Device::Kind::cuda, refuse, layout, launch, sources};

}  // namespace onepass::cuda
