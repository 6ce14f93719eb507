// The fused call and attention by hand on the same input.
#pragma once

#include <cstdint>

#include "cli/parts/manual.h"
#include "cli/parts/timing.h"
#include "onepass/attention.h"
#include "onepass/plan.h"

namespace onepass::cli {

struct Comparison {
  Plan plan;
  Timing fused;
  ManualRun manual;  // the run of median time
  int manual_runs = 0;
  double flops = 0.0;  // of the visible pairs
  double visible_share = 0.0;
  std::int64_t fused_bytes_moved = 0;  // q and o once, k and v once for each tile that is visited
  std::int64_t fused_peak_bytes = -1, manual_bytes = 0, manual_peak_bytes = -1;
  double difference = 0.0;  // largest between the two outputs
};

/// Runs both, the fused call on `device` and attention by hand on the CPU, up to `runs` times,
/// fewer where that takes over 10 s; o holds the fused output. Memory is measured beyond inputs and
/// outputs, -1 where the system does not say. Throws Error.
Comparison compare(const TensorView& q, const TensorView& k, const TensorView& v,
                   const TensorView& o, const Attention& options, int threads, int runs,
                   Device device = {});

/// Bytes that one thread-independent pass over the tiles moves.
std::int64_t counted_bytes(const Problem& problem, std::int64_t visited_tile_keys);

}  // namespace onepass::cli
