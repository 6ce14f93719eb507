// Who does what: the parts of the work are counted over all sequences and heads, each sequence with
// its own lengths, so that nothing is done for padding.
#pragma once

#include <cstdint>

#include "core/problem.h"
#include "cpu/forward.h"

namespace onepass::cpu {

/// Packed heads wait in memory for their turn: as few as give each thread this many query tiles, so
/// that they stay in the caches.
inline constexpr std::int64_t wave_items_per_thread = 16;

/// One sequence, its parts of the work, and how many parts lie before it.
struct SequenceWork {
  Sequence at;
  std::int64_t row_tiles = 0;    // query tiles of a head
  std::int64_t key_groups = 0;   // groups of 64 keys of a head
  std::int64_t scope_bytes = 0;  // of one record (scopes.h)
  // Sums over the sequences before it.
  std::int64_t row_tiles_before = 0, key_groups_before = 0, scope_bytes_before = 0;
};

/// Bytes that the table of all sequences takes in the workspace; a multiple of 64.
std::int64_t sequences_bytes(std::int64_t b);

/// Fills the table in its place in the workspace.
void list_sequences(ForwardCall& call);

/// Goes on to the next heads: as few as keep the threads busy, no more than the workspace packs.
/// False when there is none left.
bool next_wave(ForwardCall& call, int threads);

/// A group of 64 keys of a head.
struct KeyGroup {
  const SequenceWork* sequence;
  std::int64_t b, h_kv;
  std::int64_t group;  // of the head
  std::int64_t place;  // of the head's first group among the wave's packed ones
};
KeyGroup key_group(const ForwardCall& call, std::int64_t item);

/// A query tile of a head.
struct RowTile {
  const SequenceWork* sequence;
  std::int64_t b, h, h_kv;
  std::int64_t tile;   // of the head
  std::int64_t place;  // of the key/value head's first group among the wave's packed ones
};
RowTile row_tile(const ForwardCall& call, std::int64_t item);

/// Query tiles of all heads before the first of query head `h` of this sequence.
std::int64_t row_tiles_before(const ForwardCall& call, const SequenceWork& sequence,
                              std::int64_t h);

}  // namespace onepass::cpu
