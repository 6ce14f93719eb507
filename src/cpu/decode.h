// What every instruction set's decode kernels are given: few queries over long keys that are read
// where they lie. Plain data, as forward.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/forward.h"

namespace onepass::cpu {

/// Queries of a key/value head, over the heads of its group: at most so many, and of fewer keys
/// packing costs nothing that matters.
inline constexpr std::int64_t decode_max_rows = 16;
inline constexpr std::int64_t decode_min_keys = 512;

/// Head dims end here (validate.cc).
inline constexpr std::int64_t decode_max_columns = 576;

/// Keys of a work item: they decide the order of summation, so they depend on nothing.
inline constexpr int chunk_keys = 512;
/// Keys of one head at a time; all heads of an item go by before the next ones, as keys of several
/// heads lie side by side.
inline constexpr int block_keys = 32;
/// Rows of an item at most, over its heads.
inline constexpr std::int64_t decode_item_rows = 64;

/// Where a thread's scratch keeps what, in bytes from its start; all multiples of 64.
struct DecodeScratch {
  std::int64_t q = 0;                // reals [rows][d_stride]
  std::int64_t s = 0;                // reals [rows][chunk_keys]; weights overwrite scores
  std::int64_t o = 0;                // reals [rows][o_stride]
  std::int64_t block = 0;            // reals [block_keys][d_stride or o_stride]: widened rows
  std::int64_t visible = 0;          // flags [rows of a head][chunk_keys]
  std::int64_t mask = 0, score = 0;  // evaluators
  std::int64_t bytes = 0;            // of one thread
};

struct DecodeSizes {
  std::int64_t chunks = 0;       // of a sequence at most
  std::int64_t rows = 0;         // of a key/value head, rounded up to whole register blocks
  std::int64_t heads = 0;        // key/value heads of an item
  std::int64_t head_blocks = 0;  // items of a chunk
  std::int64_t d_stride = 0, o_stride = 0;  // rounded up to whole vectors
  DecodeScratch scratch;
  // Workspace, offsets in bytes: parts, records (scopes.h), table of sequences, scratch. A part is
  // what one chunk gives one row: reals m, l, then, a vector after the first, o [o_stride].
  std::int64_t part_bytes = 0, scopes_offset = 0, sequences_offset = 0, scratch_offset = 0;
  std::int64_t workspace_bytes = 0;
};

struct DecodeCall {
  ForwardCall forward;  // of its sizes, those of sequences and scopes
  bool mask_varies_by_head = false;
  DecodeSizes sizes;

  /// Where the parts of rows of a key/value head begin.
  std::byte* parts(std::int64_t b, std::int64_t h_kv, std::int64_t chunk) const {
    const std::int64_t head = b * forward.h_kv + h_kv;
    return forward.workspace + (head * sizes.chunks + chunk) * sizes.rows * sizes.part_bytes;
  }
};

/// The kernels of one compute form on one instruction set, in the order they run.
struct DecodeKernels {
  Form form;
  /// The parts of a chunk's keys: item = (sequence, chunk, block of heads).
  void (*run)(const DecodeCall&, std::int64_t item, int thread);
  /// o and lse of query head `item % h_q` of sequence `item / h_q`.
  void (*merge)(const DecodeCall&, std::int64_t item, int thread);
};

/// Rows of a register block: as many of a head's rows as there are, up to 4 and the lanes.
inline int decode_block_rows(std::int64_t rows, int lanes) {
  const int most = lanes < 4 ? lanes : 4;
  return rows <= 1 ? 1 : rows == 2 ? 2 : most;
}

}  // namespace onepass::cpu
