#include "cpu/sequences.h"

#include <algorithm>
#include <new>

#include "core/rounding.h"
#include "cpu/scopes.h"

namespace onepass::cpu {
namespace {

/// The last sequence with `before * heads` <= item: empty ones share their number with the next.
const SequenceWork& sequence_of(const ForwardCall& call, std::int64_t item, std::int64_t heads,
                                std::int64_t SequenceWork::*before) {
  const SequenceWork* end = call.sequences + call.b;
  const auto later = [&](std::int64_t at, const SequenceWork& s) { return at < s.*before * heads; };
  return *(std::upper_bound(call.sequences, end, item, later) - 1);
}

std::int64_t groups_before(const ForwardCall& call, const SequenceWork& s, std::int64_t h_kv) {
  return s.key_groups_before * call.h_kv + s.key_groups * h_kv;
}

}  // namespace

std::int64_t row_tiles_before(const ForwardCall& call, const SequenceWork& s, std::int64_t h) {
  return s.row_tiles_before * call.h_q + s.row_tiles * h;
}

std::int64_t sequences_bytes(std::int64_t b) {
  return round_up(b * static_cast<std::int64_t>(sizeof(SequenceWork)), 64);
}

void list_sequences(ForwardCall& call) {
  auto* table = reinterpret_cast<SequenceWork*>(call.workspace + call.sizes.sequences_offset);
  SequenceWork next;
  for (std::int64_t b = 0; b < call.b; ++b) {
    next.at = call.problem->sequence(b);
    next.row_tiles = divide_up(next.at.s_q, call.sizes.tile_rows);
    // Keys that no query looks at are not packed.
    next.key_groups = next.at.s_q > 0 ? divide_up(next.at.s_kv, group_keys) : 0;
    next.scope_bytes = scope_bytes(*call.problem, next.at.s_q, next.at.s_kv);
    new (table + b) SequenceWork(next);
    next.row_tiles_before += next.row_tiles;
    next.key_groups_before += next.key_groups;
    next.scope_bytes_before += next.scope_bytes;
  }
  call.sequences = std::launder(table);
}

bool next_wave(ForwardCall& call, int threads) {
  Wave& wave = call.wave;
  const std::int64_t per_head = call.sizes.scopes_per_head;
  wave.first_head += wave.heads;
  if (wave.first_head >= call.b * call.h_kv) return false;
  const SequenceWork& first = call.sequences[wave.first_head / call.h_kv];
  const std::int64_t h_kv = wave.first_head % call.h_kv;
  wave.first_group = groups_before(call, first, h_kv);
  wave.first_row_tile = row_tiles_before(call, first, h_kv * call.group);
  wave.first_scope_byte =
      (first.scope_bytes_before * call.h_kv + first.scope_bytes * h_kv) * per_head;
  wave.heads = wave.groups = wave.row_tiles = 0;
  std::int64_t scope_bytes = 0;
  for (std::int64_t head = wave.first_head; head < call.b * call.h_kv; ++head) {
    const SequenceWork& s = call.sequences[head / call.h_kv];
    scope_bytes += s.scope_bytes * per_head;
    if (wave.heads > 0 && (wave.groups + s.key_groups > call.sizes.wave_groups ||
                           scope_bytes > call.sizes.wave_scope_bytes ||
                           wave.row_tiles + s.row_tiles * call.group > call.sizes.wave_row_tiles ||
                           wave.row_tiles >= wave_items_per_thread * threads)) {
      break;
    }
    ++wave.heads;
    wave.groups += s.key_groups;
    wave.row_tiles += s.row_tiles * call.group;
  }
  return true;
}

KeyGroup key_group(const ForwardCall& call, std::int64_t item) {
  const std::int64_t at = call.wave.first_group + item;
  const SequenceWork& s = sequence_of(call, at, call.h_kv, &SequenceWork::key_groups_before);
  const std::int64_t within = at - s.key_groups_before * call.h_kv;
  const std::int64_t h_kv = within / s.key_groups;
  return {.sequence = &s,
          .b = &s - call.sequences,
          .h_kv = h_kv,
          .group = within % s.key_groups,
          .place = groups_before(call, s, h_kv) - call.wave.first_group};
}

RowTile row_tile(const ForwardCall& call, std::int64_t item) {
  const std::int64_t at = call.wave.first_row_tile + item;
  const SequenceWork& s = sequence_of(call, at, call.h_q, &SequenceWork::row_tiles_before);
  const std::int64_t within = at - s.row_tiles_before * call.h_q;
  const std::int64_t h = within / s.row_tiles, h_kv = h / call.group;
  return {.sequence = &s,
          .b = &s - call.sequences,
          .h = h,
          .h_kv = h_kv,
          // Late rows first: under a causal mask they are the long ones.
          .tile = s.row_tiles - 1 - within % s.row_tiles,
          .place = groups_before(call, s, h_kv) - call.wave.first_group};
}

}  // namespace onepass::cpu
