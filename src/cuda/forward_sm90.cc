// cuda.forward.sm90: Hopper's kernel of 16-bit forward calls.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/rounding.h"
#include "cuda/device.h"
#include "cuda/driver.h"
#include "cuda/forward_call.h"
#include "cuda/forward_kernels.h"
#include "cuda/kernel.h"
#include "cuda/kernel_text.h"
#include "cuda/tensor_map.h"
#include "cuda/wgmma_text.h"

namespace onepass::cuda {
namespace {

constexpr std::int64_t largest_head_dim = 256, slab_width = 64, work_stages = 2;
constexpr std::int64_t most_length = std::numeric_limits<std::int32_t>::max() - 1024;
constexpr std::int64_t most_tiles = std::numeric_limits<std::int32_t>::max();

struct Shape {
  Tile tile;
  std::int64_t stages, query_stages;
};

// Registers bound the tiles: a lane of a warpgroup that computes has, of 64 rows, a logit and half
// a weight (twice) for every 2 keys, and a sum for every 2 columns. Three such warpgroups have 160
// registers a lane, two have 232. Code for single pairs needs some, dropout most.
Shape shape_of(const Problem& p) {
  const std::int64_t most = std::max(p.d, p.d_v);
  const bool pairs = p.has_score || (p.has_mask && !only_compares(p.mask));
  const int code = p.dropout.p > 0.0 ? 2 : pairs ? 1 : 0;
  const auto keys = [&](std::int64_t none, std::int64_t some, std::int64_t much) {
    return code == 0 ? none : code == 1 ? some : much;
  };
  if (most <= 64) return {{192, keys(96, 80, 48)}, 4, 2};
  if (most <= 128) return {{128, keys(128, 112, 80)}, 2, 2};
  return {{128, keys(64, 48, 32)}, 2, 1};
}

std::int64_t padded(std::int64_t head_dim) { return round_up(head_dim, 16); }

// Tiles in slabs of 64 columns, their barriers, and what puts them at a multiple of 1024 bytes.
std::int64_t shared_bytes(const Problem& p) {
  const Shape shape = shape_of(p);
  const std::int64_t d = round_up(p.d, slab_width), d_v = round_up(p.d_v, slab_width);
  const std::int64_t keys = shape.stages * shape.tile.keys;
  return 2 * (shape.query_stages * shape.tile.rows * d + keys * (d + d_v)) +
         16 * (shape.query_stages + 2 * shape.stages + work_stages) + 1024;
}

// As MappedCall in kernels/forward_sm90.cuh.
struct Mapped {
  TensorMap q, k, v;
  void* drawn = nullptr;
};
constexpr std::size_t before_call = offsetof(Mapped, drawn) + sizeof(void*);

std::size_t mapped_bytes(const Problem& p) {
  return static_cast<std::size_t>(
      round_up(static_cast<std::int64_t>(before_call + forward_call_size(p)), alignof(TensorMap)));
}

// The copy engine takes no step of 0.
std::string refuse_steps(const Problem& p) {
  for (const auto& [name, x] : {std::pair{"q", &p.q}, {"k", &p.k}, {"v", &p.v}}) {
    for (std::size_t i = 0; i < 3; ++i) {
      if (x->shape[i] > 1 && x->strides[i] <= 0) {
        return std::string(name) + ": stride " + std::to_string(x->strides[i]) +
               "; this kernel takes positive ones";
      }
    }
  }
  return {};
}

std::string refuse(const Problem& p, const Capabilities& capabilities) {
  std::string reason = refuse_forward(p, capabilities);
  if (!reason.empty()) return reason;
  if (mapped_bytes(p) > most_parameter_bytes) {
    return "args: more than this kernel's 4096 bytes of parameters hold";
  }
  if (capabilities.sm != 90) return "device: not of compute capability 9.0";
  if (p.dtype == DType::float32) return "dtype: float32; this kernel takes 16-bit ones";
  if (std::min(p.d, p.d_v) < 1 || std::max(p.d, p.d_v) > largest_head_dim) {
    return "d, d_v: " + std::to_string(p.d) + ", " + std::to_string(p.d_v) +
           "; this kernel takes 1 to 256";
  }
  if (!p.has_score && !(static_cast<float>(p.scale) > 0.0F)) {
    return "scale: not above 0 in float32; this kernel takes others";
  }
  if (p.s_q < 1 || p.s_kv < 1) return "s_q, s_kv: 0";
  if (std::max(p.s_q, p.s_kv) > most_length) return "s_q, s_kv: beyond 2^31 - 1024";
  if (p.b * p.h_q * divide_up(p.s_q, shape_of(p).tile.rows) > most_tiles) {
    return "b, h_q, s_q: more than 2^31 - 1 tiles";
  }
  reason = refuse_inputs(p);
  if (!reason.empty()) return reason;
  return refuse_steps(p);
}

void layout(const Problem& p, Plan& plan) {
  plan.tile = shape_of(p).tile;
  plan.threads = 1;
  if (p.has_mask) plan.workspace_bytes = sizeof(std::int32_t);
}

Constants constants_of(const Problem& p) {
  const Shape shape = shape_of(p);
  const std::int64_t warps = shape.tile.rows / 16;
  return {{"tile_rows", shape.tile.rows},
          {"tile_keys", shape.tile.keys},
          {"warps", warps},
          {"stages", shape.stages},
          {"query_stages", shape.query_stages},
          {"loader_registers", warps == 8 ? 40 : 32},
          {"compute_registers", warps == 8 ? 232 : 160},
          {"stores_pairs", stores_pairs(p.o)},
          {"stores_blocks", stores_blocks(p.o)}};
}

std::string source(const Problem& p) {
  return forward_preamble(p, constants_of(p), narrow_texts(p)) + "namespace {\n" +
         wgmma_text({.name = "multiply_keys",
                     .dtype = p.dtype,
                     .columns = shape_of(p).tile.keys,
                     .a_in_registers = false,
                     .b_by_rows = false}) +
         wgmma_text({.name = "multiply_values",
                     .dtype = p.dtype,
                     .columns = padded(p.d_v),
                     .a_in_registers = true,
                     .b_by_rows = true}) +
         "}\n" + kernel_text("cuda/kernels/forward_sm90.cuh");
}

std::vector<KernelSource> sources(const Problem& p) {
  return {{"forward_sm90", forward_configuration(p, constants_of(p), narrow_texts(p)), source}};
}

// Tiles of unequal length are drawn: the counter, 0.
Status start_drawing(const Problem& p, const Exec& exec) {
  const Result<Driver>& driver = cuda::driver();
  if (!driver.ok()) return driver.status();
  const ContextScope context(driver.value(), p.device.index);
  if (!context.status().ok()) return context.status();
  const auto counter = reinterpret_cast<std::uintptr_t>(exec.workspace);
  return driver.value().check(driver.value().memory_set(counter, 0, 1, exec.stream),
                              "kernel: its counter");
}

Status launch(const Problem& p, const Plan& plan, const Exec& exec) {
  const Tile tile = shape_of(p).tile;
  const std::int64_t tiles = p.b * p.h_q * divide_up(p.s_q, tile.rows);
  if (tiles == 0) return {};
  const Result<Capabilities> card = cuda_capabilities(p.device.index);
  if (!card.ok()) return card.status();
  const std::int64_t blocks = std::min<std::int64_t>(tiles, card.value().multiprocessors);
  Mapped maps;
  Status status = make_tensor_map(p.q, tile.rows, maps.q);
  if (status.ok()) status = make_tensor_map(p.k, tile.keys, maps.k);
  if (status.ok()) status = make_tensor_map(p.v, tile.keys, maps.v);
  if (status.ok() && p.has_mask && tiles > blocks) {
    maps.drawn = exec.workspace;
    status = start_drawing(p, exec);
  }
  if (!status.ok()) return status;
  const std::vector<std::byte> call = forward_call_bytes(p, p.has_mask ? section_heads(p) : 1);
  std::vector<std::byte> all(mapped_bytes(p));
  std::memcpy(all.data(), &maps, before_call);
  std::memcpy(all.data() + before_call, call.data(), call.size());
  const Grid grid{.blocks = static_cast<std::uint32_t>(blocks),
                  .threads = static_cast<std::uint32_t>(2 * tile.rows + 128),
                  .shared_bytes = static_cast<std::uint32_t>(shared_bytes(p))};
  return launch_kernel(*plan.kernels[0], p.device.index, grid, exec.stream, all.data());
}

}  // namespace

constexpr KernelRow forward_sm90{
    "cuda.forward.sm90", Device::Kind::cuda, refuse, layout, launch, sources};

}  // namespace onepass::cuda
