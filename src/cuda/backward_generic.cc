// cuda.backward.generic: kernel texts for every backward call that has one length for all.
#include "cuda/backward_generic.h"

#include <cstdint>
#include <utility>

#include "core/rounding.h"
#include "cuda/backward_arrays.h"
#include "cuda/backward_kernels.h"
#include "cuda/kernel_text.h"

namespace onepass::cuda {
namespace {

constexpr std::int64_t piece = 64;  // as in kernels/backward_tile.cuh
constexpr std::int64_t rows_per_delta_block = 128;

// The largest tile whose sums leave registers for the rest: 4 * size / 16 for each 64 columns.
std::int64_t summed_tile(std::int64_t pieces) { return pieces <= 4 ? 64 : pieces <= 8 ? 32 : 16; }

Tile keys_tile(const Problem& p) {
  return {32, summed_tile(divide_up(p.d, piece) + divide_up(p.d_v, piece))};
}

Tile queries_tile(const Problem& p) { return {summed_tile(divide_up(p.d, piece)), 32}; }

Constants constants(Tile tile, const Again& again) {
  return {{"tile_rows", tile.rows},
          {"tile_keys", tile.keys},
          {"again_keys", again.tile_keys},
          {"again_rows", again.tile_rows}};
}

std::string delta_source(const Problem& p) {
  return backward_preamble(p, {}) + kernel_text("cuda/kernels/backward_delta.cuh");
}

std::string all_keys_source(const Problem& p) { return keys_source(p, {}); }
std::string all_queries_source(const Problem& p) { return queries_source(p, {}); }

std::vector<KernelSource> sources(const Problem& p) {
  std::vector<KernelSource> all;
  add_delta(p, all);
  if (wants_keys(p)) all.push_back({"backward_keys", keys_configuration(p, {}), all_keys_source});
  if (p.dq.given()) {
    all.push_back({"backward_queries", queries_configuration(p, {}), all_queries_source});
  }
  for (KernelSource& source : array_sources(p)) all.push_back(std::move(source));
  return all;
}

void layout(const Problem& p, Plan& plan) {
  plan.tile = keys_tile(p);
  plan.threads = 1;
  plan.workspace_bytes = backward_workspace(p).bytes + array_sums_bytes(p);
}

Status launch(const Problem& p, const Plan& plan, const Exec& exec) {
  const std::vector<std::byte> call = backward_call_bytes(p, exec.workspace);
  BackwardLaunches launches(plan, p.device.index, exec.stream);
  Status status = start_delta(p, call.data(), launches);
  if (status.ok() && wants_keys(p)) status = launches.start(keys_blocks(p), call.data());
  if (status.ok() && p.dq.given()) status = launches.start(queries_blocks(p), call.data());
  if (!status.ok() || p.dargs.empty()) return status;
  std::byte* const sums = static_cast<std::byte*>(exec.workspace) + backward_workspace(p).bytes;
  return launch_arrays(p, exec.workspace, sums, launches);
}

}  // namespace

extern const KernelRow generic_backward_row = {
    "cuda.backward.generic", Device::Kind::cuda, refuse_backward, layout, launch, sources};

void add_delta(const Problem& p, std::vector<KernelSource>& sources) {
  sources.push_back({"backward_delta", backward_configuration(p, {}), delta_source});
  if (!p.dsink.given()) return;
  sources.push_back({"backward_sink", backward_configuration(p, {}), delta_source});
}

Status start_delta(const Problem& p, const void* call, BackwardLaunches& launches) {
  const std::int64_t rows = p.b * p.h_q * backward_workspace(p).stat_rows;
  const Status status = launches.start(divide_up(rows, rows_per_delta_block), call);
  if (!status.ok() || !p.dsink.given()) return status;
  return launches.start(p.h_q, call);
}

bool wants_keys(const Problem& p) { return p.dk.given() || p.dv.given(); }

std::string keys_source(const Problem& p, const Again& again) {
  return backward_preamble(p, constants(keys_tile(p), again)) +
         kernel_text("cuda/kernels/backward_keys.cuh");
}

std::string queries_source(const Problem& p, const Again& again) {
  return backward_preamble(p, constants(queries_tile(p), again)) +
         kernel_text("cuda/kernels/backward_queries.cuh");
}

std::string keys_configuration(const Problem& p, const Again& again) {
  return backward_configuration(p, constants(keys_tile(p), again));
}

std::string queries_configuration(const Problem& p, const Again& again) {
  return backward_configuration(p, constants(queries_tile(p), again));
}

std::int64_t keys_blocks(const Problem& p) {
  return p.b * p.h_kv * divide_up(p.s_kv, keys_tile(p).keys);
}

std::int64_t queries_blocks(const Problem& p) {
  return p.b * p.h_q * divide_up(p.s_q, queries_tile(p).rows);
}

}  // namespace onepass::cuda
