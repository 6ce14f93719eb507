#include "cpu/sizes.h"

#include <algorithm>
#include <cmath>

#include "core/rounding.h"
#include "cpu/scopes.h"
#include "cpu/sequences.h"
#include "cpu/tiles.h"
#include "lang/evaluate.h"

namespace onepass::cpu {
namespace {

// Packed heads never take more than this unless one head is larger.
constexpr std::int64_t wave_bytes = std::int64_t{16} << 20;
constexpr std::int64_t wave_bytes_per_thread = std::int64_t{2} << 20;
// Query rows of a key/value head up to which V is not worth a copy.
constexpr std::int64_t few_queries = 48;
// Work that pays for waking a thread (about 20 us at 100 GFLOP/s).
constexpr double flops_per_thread = 2e6;

ScratchMap scratch_map(const Problem& p, const ForwardSizes& sizes, const Form& form) {
  ScratchMap map;
  const std::int64_t rows = sizes.tile_rows;
  const auto take = [&map](std::int64_t bytes) {
    const std::int64_t at = map.bytes;
    map.bytes += round_up(bytes, 64);
    return at;
  };
  map.q = take(rows * sizes.d_units * form.unit_bytes);
  map.s = take(std::int64_t{group_rows} * sizes.tile_keys * form.real_bytes);
  map.o = take(rows * sizes.o_stride * form.real_bytes);
  map.row_sum = take(rows * form.lanes * form.real_bytes);
  map.row_max = take(rows / group_rows * group_stride * form.real_bytes);
  const std::int64_t key_rows = form.lanes * round_up(sizes.d_units, form.lanes);
  map.rows = take(std::max(key_rows, sizes.o_stride) * form.unit_bytes);
  map.mask = take(p.has_mask ? lang::evaluator_scratch_bytes(p.mask) : 0);
  map.score = take(p.has_score ? lang::evaluator_scratch_bytes(p.score) : 0);
  return map;
}

/// Room for the packed heads and the scopes of a wave.
void size_wave(const Problem& p, const Plan& plan, ForwardSizes& sizes) {
  const Lengths lengths = lengths_of(p);
  const std::int64_t heads = std::max<std::int64_t>(p.b * p.h_kv, 1);
  const std::int64_t scope = scope_bytes(p, p.s_q, p.s_kv) * sizes.scopes_per_head;  // of a head
  const std::int64_t head_bytes = std::max<std::int64_t>(
      lengths.most_groups * (sizes.packed_k_bytes + sizes.packed_v_bytes) + scope, 1);
  const std::int64_t head_items = std::max<std::int64_t>(
      p.group * static_cast<std::int64_t>(std::ceil(lengths.mean_q / sizes.tile_rows)), 1);
  const std::int64_t wanted = (wave_items_per_thread * plan.threads + head_items - 1) / head_items;
  const std::int64_t most = (wave_bytes + wave_bytes_per_thread * plan.threads) / head_bytes;
  const std::int64_t wave_heads = std::clamp<std::int64_t>(std::min(wanted, most), 1, heads);
  sizes.wave_groups = std::min(wave_heads * lengths.most_groups, lengths.all_groups);
  sizes.wave_scope_bytes = wave_heads * scope;
}

}  // namespace

Lengths lengths_of(const Problem& p) {
  const double sequences = static_cast<double>(std::max<std::int64_t>(p.b, 1));
  const std::int64_t most_groups = (p.s_kv + group_keys - 1) / group_keys;
  const bool packed = p.cu_seqlens_k.given();
  return {.mean_q = static_cast<double>(p.s_q) / (p.cu_seqlens_q.given() ? sequences : 1.0),
          .mean_kv = static_cast<double>(p.s_kv) / (packed ? sequences : 1.0),
          .most_groups = most_groups,
          .all_groups = p.h_kv * (packed ? p.s_kv / group_keys + p.b : p.b * most_groups)};
}

void choose_tile(const Problem& p, Isa isa, Plan& plan) {
  const ForwardTile tile = forward_tile(isa, p.dtype, p.d, p.d_v);
  const Lengths lengths = lengths_of(p);
  const double heads = static_cast<double>(p.b) * static_cast<double>(p.h_q);
  const double flops =
      2.0 * heads * lengths.mean_q * lengths.mean_kv * static_cast<double>(p.d + p.d_v);
  plan.threads = static_cast<int>(std::clamp(flops / flops_per_thread, 1.0, 1.0 * plan.threads));
  plan.tile.keys =
      std::min<std::int64_t>(tile.keys, round_up(std::max<std::int64_t>(p.s_kv, 1), group_keys));
  std::int64_t rows =
      std::min<std::int64_t>(tile.rows, round_up(std::max<std::int64_t>(p.s_q, 1), group_rows));
  const auto items = [&] { return heads * std::ceil(lengths.mean_q / static_cast<double>(rows)); };
  while (plan.threads > 1 && rows > 4 * group_rows && items() < 4 * plan.threads) {
    rows = round_up(rows / 2, group_rows);
  }
  plan.tile.rows = rows;
}

ForwardSizes forward_sizes(const Problem& p, const Form& form, const Plan& plan) {
  ForwardSizes sizes;
  sizes.tile_rows = static_cast<int>(plan.tile.rows);
  sizes.tile_keys = static_cast<int>(plan.tile.keys);
  sizes.d_units = (p.d + form.unit_elements - 1) / form.unit_elements;
  sizes.o_stride = round_up(p.d_v, form.lanes);
  const DType packed = form.unit_elements == 2 ? DType::bfloat16
                       : form.real_bytes == 8  ? DType::float64
                                               : DType::float32;
  // Rows far apart cost more to read again for every six queries than to copy once; few queries
  // do not read them often enough.
  const bool readable = form.unit_elements == 1 && p.v.dtype == packed && p.v.strides[3] == 1 &&
                        sizes.o_stride == p.d_v;
  const bool dense = p.v.strides[1] == p.d_v;
  sizes.v_in_place =
      readable && p.cache.page_size == 0 && (dense || p.s_q * p.group <= few_queries);
  sizes.packed_k_bytes = std::int64_t{group_keys} * sizes.d_units * form.unit_bytes;
  sizes.packed_v_bytes = sizes.v_in_place ? 0
                                          : std::int64_t{group_keys} / form.unit_elements *
                                                sizes.o_stride * form.unit_bytes;
  sizes.scopes_per_head = scopes_per_head(p);
  size_wave(p, plan, sizes);
  sizes.scratch = scratch_map(p, sizes, form);
  sizes.v_offset = sizes.wave_groups * sizes.packed_k_bytes;
  sizes.scopes_offset = sizes.v_offset + sizes.wave_groups * sizes.packed_v_bytes;
  sizes.sequences_offset = sizes.scopes_offset + sizes.wave_scope_bytes;
  sizes.scratch_offset = sizes.sequences_offset + sequences_bytes(p.b);
  sizes.workspace_bytes = sizes.scratch_offset + plan.threads * sizes.scratch.bytes;
  return sizes;
}

}  // namespace onepass::cpu
