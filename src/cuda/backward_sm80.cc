// cuda.backward.sm80: the backward of 16-bit inputs on tensor cores (mma.sync), head dims up to
// 128.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/rounding.h"
#include "cuda/backward_arrays.h"
#include "cuda/backward_call.h"
#include "cuda/backward_generic.h"
#include "cuda/backward_kernels.h"
#include "cuda/kernel_text.h"

namespace onepass::cuda {
namespace {

constexpr std::int64_t most_width = 128;
constexpr std::int64_t most_length = std::int64_t{1} << 30;
constexpr std::int64_t most_blocks = std::int64_t{1} << 30;
constexpr std::int64_t section_bytes = std::int64_t{24} << 20;  // of the second cache
constexpr std::int64_t section_blocks = 1024;
// Blocks that look for tiles to take again; mostly there are none.
constexpr std::int64_t again_blocks = 512;

/// Blocks that share a tile's columns: where an expression takes registers that the sums of all
/// columns do not leave, S and dP are computed twice.
using Parts = std::int64_t;

/// The constants and shared memory of kernels/backward_sm80_keys.cuh.
struct KeysShape {
  std::int64_t halves, groups;
  Parts parts;
  std::int64_t tile_keys() const { return 32 * groups; }
  std::int64_t threads() const { return 32 * groups * halves; }
  std::int64_t shared_bytes(const Problem& p) const {
    const std::int64_t shares = halves * parts;
    const std::int64_t widths = round_up(p.d, 16 * shares) + round_up(p.d_v, 16 * shares);
    const std::int64_t stage = 64 * widths * 2 + 64 * 2 * 4;
    const std::int64_t exchanged = (halves > 1 ? threads() / 32 : 1) * 8 * 32 * 16;
    return tile_keys() * widths * 2 + 2 * stage + exchanged;
  }
};

KeysShape keys_shape(const Problem& p, Parts parts) {
  // Scores and dropout take registers that the sums of one warp of 64 columns do not leave.
  const bool wide = std::max(p.d, p.d_v) > 64 || p.has_score || p.dropout.p > 0.0;
  return {.halves = wide ? 2 : 1, .groups = 4, .parts = parts};
}

/// Those of kernels/backward_sm80_queries.cuh.
struct QueriesShape {
  static constexpr std::int64_t tile_rows = 128, threads = 128;
  static std::int64_t shared_bytes(const Problem& p, Parts parts) {
    const std::int64_t widths = round_up(p.d, 16 * parts) + round_up(p.d_v, 16);
    return tile_rows * widths * 2 + 2 * 32 * widths * 2 + 128;
  }
};

Again again_of(const Problem& p) {
  const KeysShape shape = keys_shape(p, 1);
  // Heads whose Q and dO (and K and V) the second cache holds. Under a mask the blocks of a head
  // are not alike and the long ones come first: enough heads that the short ones fill up their end.
  const std::int64_t head_bytes = p.group * p.s_q * (p.d + p.d_v) * 2;
  const std::int64_t head_blocks = divide_up(p.s_kv, shape.tile_keys());
  std::int64_t heads = section_bytes / std::max<std::int64_t>(head_bytes, 1);
  if (p.has_mask) {
    heads = std::max(heads, divide_up(section_blocks, std::max<std::int64_t>(head_blocks, 1)));
  }
  return {.tile_keys = shape.tile_keys(),
          .tile_rows = QueriesShape::tile_rows,
          .section_heads = std::max<std::int64_t>(heads, 1)};
}

bool leaves_out(const Problem& p) { return p.has_mask || p.has_score || p.dropout.p > 0.0; }

bool int32_texts(const Problem& p) {
  return fits_int32(p, p.mask) &&
         (!p.has_score || (fits_int32(p, p.score) && fits_int32(p, p.slope)));
}

Constants keys_constants(const Problem& p, Parts parts) {
  const KeysShape shape = keys_shape(p, parts);
  return {{"halves", shape.halves},
          {"groups", shape.groups},
          {"parts", parts},
          {"shared_bytes", shape.shared_bytes(p)}};
}

Constants queries_constants(const Problem& p, Parts parts) {
  return {{"parts", parts}, {"shared_bytes", QueriesShape::shared_bytes(p, parts)}};
}

template <Parts parts>
std::string sm80_keys_source(const Problem& p) {
  return backward_preamble(p, keys_constants(p, parts), int32_texts(p)) +
         kernel_text("cuda/kernels/backward_sm80_keys.cuh");
}

template <Parts parts>
std::string sm80_queries_source(const Problem& p) {
  return backward_preamble(p, queries_constants(p, parts), int32_texts(p)) +
         kernel_text("cuda/kernels/backward_sm80_queries.cuh");
}

std::string keys_again_source(const Problem& p) { return keys_source(p, again_of(p)); }
std::string queries_again_source(const Problem& p) { return queries_source(p, again_of(p)); }

template <Parts parts>
std::vector<KernelSource> sources(const Problem& p) {
  std::vector<KernelSource> all;
  const bool int32 = int32_texts(p);
  add_delta(p, all);
  if (wants_keys(p)) {
    all.push_back({"backward_sm80_keys", backward_configuration(p, keys_constants(p, parts), int32),
                   sm80_keys_source<parts>});
    if (leaves_out(p)) {
      all.push_back({"backward_keys", keys_configuration(p, again_of(p)), keys_again_source});
    }
  }
  if (p.dq.given()) {
    all.push_back({"backward_sm80_queries",
                   backward_configuration(p, queries_constants(p, parts), int32),
                   sm80_queries_source<parts>});
    if (leaves_out(p)) {
      all.push_back(
          {"backward_queries", queries_configuration(p, again_of(p)), queries_again_source});
    }
  }
  for (KernelSource& source : array_sources(p)) all.push_back(std::move(source));
  return all;
}

bool fits_copies(const TensorView& view) {
  if (reinterpret_cast<std::uintptr_t>(view.data) % 16 != 0) return false;
  if (view.shape[3] > 1 && view.strides[3] != 1) return false;
  for (std::size_t dim = 0; dim < 3; ++dim) {
    if (view.shape[dim] > 1 && view.strides[dim] % 8 != 0) return false;
  }
  return true;
}

std::int64_t keys_tiles(const Problem& p) {
  return p.b * p.h_kv * divide_up(p.s_kv, keys_shape(p, 1).tile_keys());
}

std::int64_t queries_tiles(const Problem& p) {
  return p.b * p.h_q * divide_up(p.s_q, QueriesShape::tile_rows);
}

template <Parts parts>
std::string refuse(const Problem& p, const Capabilities& capabilities) {
  if (std::string reason = refuse_backward(p, capabilities); !reason.empty()) return reason;
  if (p.dtype == DType::float32) return "dtype: float32; this kernel takes 16-bit ones";
  if (p.dout.dtype != p.dtype) return "dout: not in the dtype of q; this kernel takes that";
  if (p.d > most_width || p.d_v > most_width || p.d == 0 || p.d_v == 0) {
    return "head dims: " + std::to_string(p.d) + " and " + std::to_string(p.d_v) +
           "; this kernel takes 1 to 128";
  }
  if (parts > 1 && std::max(p.d, p.d_v) <= 64)
    return "head dims: up to 64, of which one block sums all";
  for (const auto& [name, view] :
       {std::pair{"q", &p.q}, {"k", &p.k}, {"v", &p.v}, {"dout", &p.dout}}) {
    if (!fits_copies(*view)) {
      return std::string(name) +
             ": its rows are not whole pieces of 16 bytes; this kernel needs address and strides "
             "in multiples of 16 bytes, the last dim contiguous";
    }
  }
  if (p.s_q > most_length || p.s_kv > most_length ||
      parts * std::max(keys_tiles(p), queries_tiles(p)) > most_blocks) {
    return "sizes: more than 2^30 rows, keys or tiles";
  }
  const std::int64_t shared =
      std::max(keys_shape(p, parts).shared_bytes(p), QueriesShape::shared_bytes(p, parts));
  if (shared > capabilities.shared_bytes) {
    return "device: " + std::to_string(capabilities.shared_bytes) +
           " bytes of shared memory a block; this kernel takes " + std::to_string(shared);
  }
  return {};
}

void layout(const Problem& p, Plan& plan) {
  plan.tile = {64, keys_shape(p, 1).tile_keys()};
  plan.threads = 1;
  plan.workspace_bytes =
      backward_workspace(p).bytes + again_bytes(p, again_of(p)) + array_sums_bytes(p);
}

template <Parts parts>
Status launch(const Problem& p, const Plan& plan, const Exec& exec) {
  auto* const workspace = static_cast<std::byte*>(exec.workspace);
  Again again = again_of(p);
  again.flags = workspace + backward_workspace(p).bytes;
  const std::vector<std::byte> call = backward_call_bytes(p, workspace, again);
  BackwardLaunches launches(plan, p.device.index, exec.stream);
  const auto tiles_again = [&](std::int64_t blocks) {
    return launches.start(std::min(blocks, again_blocks), call.data());
  };
  Status status = start_delta(p, call.data(), launches);
  if (status.ok() && wants_keys(p)) {
    const KeysShape shape = keys_shape(p, parts);
    status =
        launches.start(parts * keys_tiles(p), call.data(), shape.threads(), shape.shared_bytes(p));
    if (status.ok() && leaves_out(p)) status = tiles_again(keys_blocks(p));
  }
  if (status.ok() && p.dq.given()) {
    status = launches.start(parts * queries_tiles(p), call.data(), QueriesShape::threads,
                            QueriesShape::shared_bytes(p, parts));
    if (status.ok() && leaves_out(p)) status = tiles_again(queries_blocks(p));
  }
  if (!status.ok() || p.dargs.empty()) return status;
  return launch_arrays(p, workspace, again.flags + again_bytes(p, again), launches);
}

}  // namespace

extern const KernelRow sm80_backward_row = {
    "cuda.backward.sm80", Device::Kind::cuda, refuse<1>, layout, launch<1>, sources<1>};
extern const KernelRow sm80_parts_backward_row = {
    "cuda.backward.sm80_parts", Device::Kind::cuda, refuse<2>, layout, launch<2>, sources<2>};

}  // namespace onepass::cuda
