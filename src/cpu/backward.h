// What every instruction set's backward kernels are given: sizes, scratch, gradients. Plain data,
// as forward.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/array_sums.h"
#include "cpu/forward.h"

namespace onepass::cpu {

/// Where a thread's scratch keeps what, in bytes from its start; all multiples of 64.
struct BackwardScratch {
  std::int64_t q = 0, dout = 0;             // reals [tile_rows][d_stride], [tile_rows][dv_stride]
  std::int64_t k = 0;                       // reals [tile_keys][d_stride]
  std::int64_t k_panels = 0, v_panels = 0;  // reals, panels [d][panel_keys], [d_v][panel_keys]
  std::int64_t dk = 0, dv = 0;              // reals [tile_keys + 5][d_stride], [..][dv_stride]
  std::int64_t p = 0, ds = 0;               // reals [tile_rows][p_stride]
  std::int64_t slope = 0;                   // reals [group_rows][tile_keys]
  std::int64_t score_ds = 0;                // reals [group_rows][tile_keys]: dS before the slope
  std::int64_t factors = 0;                 // reals [terms][group_rows][tile_keys]
  std::int64_t left_out = 0;                // flags [tile_rows][p_stride]
  std::int64_t mask_code = 0, score_code = 0, slope_code = 0;  // evaluators
  std::int64_t term_code = 0, term_code_bytes = 0;  // two evaluators of each term: so many bytes
  std::int64_t bytes = 0;                           // of one thread
};

struct BackwardSizes {
  int tile_rows = 0, tile_keys = 0;
  std::int64_t ranges = 0;                   // the most key ranges of a head
  std::int64_t d_stride = 0, dv_stride = 0;  // rounded up to whole vectors
  std::int64_t p_stride = 0;                 // tile_keys and some
  BackwardScratch scratch;
  Chains chains;
  // Workspace, offsets in bytes. Of each query tile of the wave: reals lse, log2_sum, delta
  // [tile_rows] (log2_sum < 0: lse is the row's normaliser, else lse is m and
  // P = 2^((S - m) log2(e) - log2_sum)); for
  // each key range dq [tile_rows][d_stride] and a byte, 1 = it has added to dq. Of all query tiles:
  // the share in dsink, double. The chains' copies of array gradients.
  std::int64_t lse_offset = 0, log2_sum_offset = 0, delta_offset = 0;
  std::int64_t dq_offset = 0, touched_offset = 0;
  std::int64_t dsink_offset = 0, arrays_offset = 0, scratch_offset = 0, workspace_bytes = 0;
};

struct BackwardCall {
  /// Inputs, expressions, workspace, sequences and wave; o and lse are inputs here. Of its sizes
  /// only tile_rows, the scopes and the table of sequences are used.
  ForwardCall forward;
  Strided dout, dlse;  // dlse: d unused; data null = none
  Strided dq, dk, dv;  // data null = not asked for
  bool dsink = false;
  const lang::Program* slope = nullptr;  // d score / d logit
  const ArrayTerm* terms = nullptr;      // where the score reads arrays whose gradient is asked for
  std::int64_t term_count = 0;
  double logit_factor = 1.0;  // product of Q and K to logit; dQ and dK are sums times it
  double kept_factor = 1.0;   // 1 / (1 - p) of dropout
  BackwardSizes sizes;
};

/// The kernels of one compute form on one instruction set, in the order they run.
struct BackwardKernels {
  Form form;
  /// delta and normalisers of a query tile of the wave.
  void (*delta)(const BackwardCall&, std::int64_t item, int thread);
  /// dk and dv of key range `item % ranges` of the wave's key/value head `item / ranges`, and what
  /// it adds to dq.
  void (*keys)(const BackwardCall&, std::int64_t item, int thread);
  /// dq of a query tile of the wave.
  void (*queries)(const BackwardCall&, std::int64_t item, int thread);
};

}  // namespace onepass::cpu
