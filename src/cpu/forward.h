// What every instruction set's forward kernels are given: sizes, packed operands, scratch.
// Plain data only: the kernels are compiled in target regions, where no inline function of the
// standard library may be instantiated.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/problem.h"

namespace onepass::cpu {

inline constexpr double log2_of_e = 1.4426950408889634074;
inline constexpr double ln_of_2 = 0.69314718055994530942;

inline constexpr int group_rows = 6;     // rows of a register block and of a mask decision
inline constexpr int group_keys = 64;    // keys of a mask decision; a multiple of every panel
inline constexpr int group_stride = 16;  // numbers kept for the rows of a group: whole vectors
inline constexpr int max_tile_rows = 384;
inline constexpr int max_tile_keys = 512;

/// How a compute form stores its operands. A unit is what one lane multiplies in one instruction:
/// one element, or two neighbours along the summed dim (bfloat16 pairs).
struct Form {
  int real_bytes;     // scores, weights' sums, accumulators
  int unit_bytes;     // packed q, k and v
  int unit_elements;  // 1 or 2
  int lanes;          // reals of a vector
  int panel_keys;     // keys of a packed panel of K: [d units][panel_keys]
};

/// A (b, s, h, d) tensor as a base and four strides in elements.
struct Strided {
  std::byte* data = nullptr;
  DType dtype = DType::float32;
  std::int64_t element_bytes = 4;
  std::int64_t b = 0, s = 0, h = 0, d = 0;
};

/// Where a thread's scratch keeps what, in bytes from its start; all multiples of 64.
struct ScratchMap {
  std::int64_t q = 0;        // units [tile_rows][d_units]
  std::int64_t s = 0;        // reals [group_rows][tile_keys]; weights overwrite scores
  std::int64_t o = 0;        // reals [tile_rows][o_stride]
  std::int64_t row_sum = 0;  // vectors [tile_rows]: lane-wise sum of weights so far
  std::int64_t row_max = 0;  // reals [groups][group_stride]: largest logit so far
  std::int64_t rows = 0;     // units: rows on their way into a packed panel
  std::int64_t mask = 0;     // the mask's evaluator
  std::int64_t score = 0;    // the score's evaluator
  std::int64_t bytes = 0;    // of one thread
};

struct ForwardSizes {
  int tile_rows = 0, tile_keys = 0;
  std::int64_t d_units = 0;
  std::int64_t o_stride = 0;  // d_v rounded up to whole vectors
  bool v_in_place = false;
  std::int64_t packed_k_bytes = 0;  // of a group of 64 keys
  std::int64_t packed_v_bytes = 0;
  std::int64_t wave_groups = 0;             // groups packed at a time, over heads and sequences
  std::int64_t wave_row_tiles = INT64_MAX;  // at a time, where they take workspace
  ScratchMap scratch;
  std::int64_t scopes_per_head = 1;  // records (scopes.h) of a key/value head
  std::int64_t wave_scope_bytes = 0;
  // Workspace: packed K, packed V, scopes, table of sequences, scratch of each thread; offsets in
  // bytes.
  std::int64_t v_offset = 0, scopes_offset = 0, sequences_offset = 0, scratch_offset = 0;
  std::int64_t workspace_bytes = 0;
};

struct SequenceWork;  // sequences.h

/// The heads at work, and where their parts begin among those of all heads.
struct Wave {
  std::int64_t first_head = 0, heads = 0;          // over (b, h_kv)
  std::int64_t first_group = 0, groups = 0;        // of 64 keys
  std::int64_t first_row_tile = 0, row_tiles = 0;  // over the query heads
  std::int64_t first_scope_byte = 0;
};

struct ForwardCall {
  std::int64_t b = 0, h_q = 0, h_kv = 0, group = 1, d = 0, d_v = 0;
  Strided q, k, v, o;
  std::int64_t page_size = 0;  // of k and v; 0 = not paged
  Strided lse;                 // d unused; data null = not asked for
  Strided sink;                // h only; data null = none
  // Logit of a score: score * weight_scale. The rest of the scale's sign and size is in Q.
  double q_factor = 1.0;
  double weight_scale = 1.0;
  double score_scale = 1.0;  // product of q and k to the logit that a score expression sees
  const Problem* problem = nullptr;
  const lang::Program* mask = nullptr;   // null = every key is visible
  const lang::Program* score = nullptr;  // null = the logit itself
  const Dropout* dropout = nullptr;      // null = none
  ForwardSizes sizes;
  std::byte* workspace = nullptr;
  const SequenceWork* sequences = nullptr;  // b of them
  Wave wave;
};

/// The kernels of one compute form on one instruction set.
struct ForwardKernels {
  Form form;
  /// Packs one group of 64 keys of the wave.
  void (*pack)(const ForwardCall&, std::int64_t item, int thread);
  /// One query tile of one query head, from scores to output.
  void (*run)(const ForwardCall&, std::int64_t item, int thread);
  /// Nothing but the form's multiply-adds, `rounds` times; returns the floating-point operations.
  /// `memory` (64 bytes, finite numbers) keeps the compiler from knowing the operands.
  double (*multiply_only)(std::int64_t rounds, void* memory);
};

struct BackwardKernels;
struct DecodeKernels;

/// What an instruction set offers; a null entry is not offered.
struct Target {
  const ForwardKernels* float32 = nullptr;
  const ForwardKernels* float64 = nullptr;
  const ForwardKernels* bfloat16_pairs = nullptr;
  const DecodeKernels* decode_float32 = nullptr;
  const DecodeKernels* decode_float64 = nullptr;
  const BackwardKernels* backward_float32 = nullptr;
  const BackwardKernels* backward_float64 = nullptr;
};

/// Null when the library was built for another architecture.
const Target* target_baseline();
const Target* target_neon();
const Target* target_avx2();
const Target* target_avx512();
const Target* target_avx512_bf16();

}  // namespace onepass::cpu
