// cuda.backward.generic: kernel texts for every backward call that has one length for all.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "cuda/backward_arrays.h"
#include "cuda/backward_call.h"
#include "cuda/backward_kernels.h"
#include "cuda/kernel_text.h"

namespace onepass::cuda {
namespace {

constexpr std::int64_t piece = 64;  // as in kernels/backward_tile.cuh
constexpr std::int64_t rows_per_delta_block = 8;

std::int64_t divide_up(std::int64_t x, std::int64_t by) { return (x + by - 1) / by; }

// The largest tile whose sums leave registers for the rest: 4 * size / 16 for each 64 columns.
std::int64_t summed_tile(std::int64_t pieces, std::int64_t most_pieces) {
  return pieces <= most_pieces / 4 ? 64 : pieces <= most_pieces / 2 ? 32 : 16;
}

Tile keys_tile(const Problem& p) {
  return {32, summed_tile(divide_up(p.d, piece) + divide_up(p.d_v, piece), 16)};
}

Tile queries_tile(const Problem& p) { return {summed_tile(divide_up(p.d, piece), 16), 32}; }

std::vector<Constant> tile_constants(Tile tile) {
  return {{"tile_rows", tile.rows}, {"tile_keys", tile.keys}};
}

std::string delta_source(const Problem& p) {
  return backward_preamble(p, {}) + kernel_text("cuda/kernels/backward_delta.cuh");
}

std::string keys_source(const Problem& p) {
  return backward_preamble(p, tile_constants(keys_tile(p))) +
         kernel_text("cuda/kernels/backward_keys.cuh");
}

std::string queries_source(const Problem& p) {
  return backward_preamble(p, tile_constants(queries_tile(p))) +
         kernel_text("cuda/kernels/backward_queries.cuh");
}

bool wants_keys(const Problem& p) { return p.dk.given() || p.dv.given(); }

std::vector<KernelSource> sources(const Problem& p) {
  std::vector<KernelSource> all;
  const auto add = [&](const char* name, std::string (*source)(const Problem&),
                       const std::vector<Constant>& constants) {
    all.push_back({name, backward_configuration(p, constants), source});
  };
  add("backward_delta", delta_source, {});
  if (p.dsink.given()) add("backward_sink", delta_source, {});
  if (wants_keys(p)) add("backward_keys", keys_source, tile_constants(keys_tile(p)));
  if (p.dq.given()) add("backward_queries", queries_source, tile_constants(queries_tile(p)));
  for (KernelSource& source : array_sources(p)) all.push_back(std::move(source));
  return all;
}

void layout(const Problem& p, Plan& plan) {
  plan.tile = keys_tile(p);
  plan.threads = 1;
  plan.workspace_bytes = backward_workspace(p).bytes + array_sums_bytes(p);
}

Status launch(const Problem& p, const Plan& plan, const Exec& exec) {
  const BackwardWorkspace places = backward_workspace(p);
  const std::vector<std::byte> call = backward_call_bytes(p, exec.workspace);
  BackwardLaunches launches(plan, p.device.index, exec.stream);
  const auto start = [&](std::int64_t blocks) { return launches.start(blocks, call.data()); };
  const std::int64_t rows = p.b * p.h_q * places.stat_rows;
  Status status = start(divide_up(rows, rows_per_delta_block));
  if (status.ok() && p.dsink.given()) status = start(p.h_q);
  if (status.ok() && wants_keys(p)) {
    status = start(p.b * p.h_kv * divide_up(p.s_kv, keys_tile(p).keys));
  }
  if (status.ok() && p.dq.given()) {
    status = start(p.b * p.h_q * divide_up(p.s_q, queries_tile(p).rows));
  }
  if (!status.ok() || p.dargs.empty()) return status;
  std::byte* const sums = static_cast<std::byte*>(exec.workspace) + places.bytes;
  return launch_arrays(p, exec.workspace, sums, launches);
}

constexpr KernelRow rows[] = {
    {"cuda.backward.generic", Device::Kind::cuda, refuse_backward, layout, launch, sources},
};

}  // namespace

std::span<const KernelRow> backward_kernels() { return rows; }

}  // namespace onepass::cuda
