#include "cpu/backward_sizes.h"

#include <algorithm>
#include <cmath>

#include "core/rounding.h"
#include "cpu/scopes.h"
#include "cpu/sequences.h"
#include "cpu/sizes.h"
#include "cpu/tiles.h"
#include "lang/evaluate.h"

namespace onepass::cpu {
namespace {

// A range has at least so many keys: each costs one more sum over dq. And there are at most so many
// of a head, because each holds a dq of its own; fewer of packed sequences, whose number gives work
// enough, and of whose lengths a plan knows only the sum.
constexpr std::int64_t least_range_keys = 512;
constexpr std::int64_t most_ranges = 16, most_packed_ranges = 4;
// No more workspace for the queries at hand unless one head needs it.
constexpr std::int64_t wave_bytes = std::int64_t{64} << 20;
constexpr std::int64_t wave_bytes_per_thread = std::int64_t{8} << 20;
// Work that pays for waking a thread (about 20 us at 100 GFLOP/s).
constexpr double flops_per_thread = 2e6;

/// Hands out places one after the other, each at a multiple of 64 bytes.
class Places {
 public:
  std::int64_t take(std::int64_t bytes) {
    const std::int64_t at = bytes_;
    bytes_ += round_up(bytes, 64);
    return at;
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::int64_t bytes_ = 0;
};

BackwardScratch scratch_map(const Problem& p, const BackwardSizes& sizes, const Form& form) {
  BackwardScratch map;
  Places places;
  const auto reals = [&](std::int64_t count) { return places.take(count * form.real_bytes); };
  const auto code = [&](bool has, const lang::Program& program) {
    return places.take(has ? lang::evaluator_scratch_bytes(program) : 0);
  };
  const std::int64_t rows = sizes.tile_rows, keys = sizes.tile_keys;
  map.q = reals(rows * sizes.d_stride);
  map.dout = reals(rows * sizes.dv_stride);
  map.k = reals(keys * sizes.d_stride);
  map.k_panels = reals(keys * p.d);
  map.v_panels = reals(keys * p.d_v);
  map.dk = reals((keys + group_rows - 1) * sizes.d_stride);
  map.dv = reals((keys + group_rows - 1) * sizes.dv_stride);
  map.p = reals(rows * sizes.p_stride);
  map.ds = reals(rows * sizes.p_stride);
  map.slope = reals(p.has_score ? group_rows * keys : 0);
  const auto terms = static_cast<std::int64_t>(p.terms.size());
  map.score_ds = reals(terms > 0 ? group_rows * keys : 0);
  map.factors = reals(terms * group_rows * keys);
  const bool may_leave_out = p.has_mask || p.has_score || p.dropout.p > 0.0;
  map.left_out = places.take(may_leave_out ? rows * sizes.p_stride : 0);
  map.mask_code = code(p.has_mask, p.mask);
  map.score_code = code(p.has_score, p.score);
  map.slope_code = code(p.has_score, p.slope);
  for (const ArrayTerm& term : p.terms) {
    map.term_code_bytes =
        std::max({map.term_code_bytes, round_up(lang::evaluator_scratch_bytes(term.factor), 64),
                  round_up(lang::evaluator_scratch_bytes(term.place), 64)});
  }
  map.term_code = places.take(2 * terms * map.term_code_bytes);
  map.bytes = places.bytes();
  return map;
}

/// Of all query heads, as far as a plan can know.
std::int64_t all_row_tiles(const Problem& p, std::int64_t tile_rows) {
  const std::int64_t of_head =
      p.cu_seqlens_q.given() ? p.s_q / tile_rows + p.b : p.b * divide_up(p.s_q, tile_rows);
  return p.h_q * of_head;
}

/// The most query tiles of a wave, each of `tile_bytes`.
std::int64_t wave_row_tiles(const Problem& p, const Plan& plan, std::int64_t tile_bytes) {
  const std::int64_t of_head = p.group * divide_up(p.s_q, plan.tile.rows);
  const std::int64_t most =
      (wave_bytes + wave_bytes_per_thread * plan.threads) / std::max<std::int64_t>(tile_bytes, 1);
  const std::int64_t wanted = wave_items_per_thread * plan.threads + of_head;
  return std::min(std::max(std::min(most, wanted), of_head), all_row_tiles(p, plan.tile.rows));
}

/// Key/value heads that so many query tiles are of, where sequences are as long as their mean.
std::int64_t wave_heads(const Problem& p, const Plan& plan, std::int64_t tiles) {
  const double rows = static_cast<double>(plan.tile.rows);
  const auto of_head = static_cast<std::int64_t>(std::ceil(lengths_of(p).mean_q / rows)) * p.group;
  const std::int64_t heads = std::max<std::int64_t>(p.b * p.h_kv, 1);
  return std::clamp<std::int64_t>(tiles / std::max<std::int64_t>(of_head, 1), 1, heads);
}

}  // namespace

std::int64_t range_keys_of(const Problem& p, std::int64_t s_kv, std::int64_t tile_keys) {
  const std::int64_t most = p.cu_seqlens_k.given() ? most_packed_ranges : most_ranges;
  return round_up(std::max(least_range_keys, divide_up(s_kv, most)), tile_keys);
}

void choose_backward_tile(const Problem& p, Isa isa, Plan& plan) {
  const BackwardTile tile = backward_tile(isa, p.dtype, p.d, p.d_v);
  const Lengths lengths = lengths_of(p);
  const double heads = static_cast<double>(p.b) * static_cast<double>(p.h_q);
  const double flops =
      5.0 * heads * lengths.mean_q * lengths.mean_kv * static_cast<double>(p.d + p.d_v);
  plan.threads = static_cast<int>(std::clamp(flops / flops_per_thread, 1.0, 1.0 * plan.threads));
  plan.tile.keys =
      std::min<std::int64_t>(tile.keys, round_up(std::max<std::int64_t>(p.s_kv, 1), group_keys));
  plan.tile.rows =
      std::min<std::int64_t>(tile.rows, round_up(std::max<std::int64_t>(p.s_q, 1), group_rows));
  // Shorter sequences have no more: their ranges are as long.
  plan.splits = std::min(divide_up(p.s_kv, round_up(least_range_keys, plan.tile.keys)),
                         p.cu_seqlens_k.given() ? most_packed_ranges : most_ranges);
}

BackwardSizes backward_sizes(const Problem& p, const Form& form, const Plan& plan,
                             ForwardSizes* forward) {
  BackwardSizes sizes;
  sizes.tile_rows = static_cast<int>(plan.tile.rows);
  sizes.tile_keys = static_cast<int>(plan.tile.keys);
  sizes.ranges = plan.splits;
  sizes.d_stride = round_up(p.d, form.lanes);
  sizes.dv_stride = round_up(p.d_v, form.lanes);
  // Rows of P and dS that begin a cache line further each do not fall on the same few sets of the
  // first cache when they are read by columns.
  sizes.p_stride = sizes.tile_keys + 16;
  sizes.scratch = scratch_map(p, sizes, form);

  const std::int64_t row_bytes = sizes.tile_rows * form.real_bytes;
  const std::int64_t dq_bytes = p.dq.given() ? sizes.ranges * row_bytes * sizes.d_stride : 0;
  const std::int64_t tiles = wave_row_tiles(p, plan, 3 * row_bytes + dq_bytes + sizes.ranges);
  *forward = {};
  forward->tile_rows = sizes.tile_rows;
  forward->wave_groups = INT64_MAX;
  forward->wave_row_tiles = tiles;
  forward->scopes_per_head = scopes_per_head(p);
  forward->wave_scope_bytes =
      wave_heads(p, plan, tiles) * scope_bytes(p, p.s_q, p.s_kv) * forward->scopes_per_head;

  Places places;
  sizes.lse_offset = places.take(tiles * row_bytes);
  sizes.log2_sum_offset = places.take(tiles * row_bytes);
  sizes.delta_offset = places.take(tiles * row_bytes);
  sizes.dq_offset = places.take(tiles * dq_bytes);
  sizes.touched_offset = places.take(tiles * sizes.ranges);
  sizes.chains = chains_of(p, sizes.ranges);
  sizes.arrays_offset = places.take(array_sums_bytes(p, sizes.chains));
  const bool dsink = p.dsink.given();
  sizes.dsink_offset = places.take(
      dsink ? all_row_tiles(p, sizes.tile_rows) * static_cast<std::int64_t>(sizeof(double)) : 0);
  forward->scopes_offset = places.take(forward->wave_scope_bytes);
  forward->sequences_offset = places.take(sequences_bytes(p.b));
  sizes.scratch_offset = places.take(plan.threads * sizes.scratch.bytes);
  sizes.workspace_bytes = places.bytes();
  return sizes;
}

}  // namespace onepass::cpu
