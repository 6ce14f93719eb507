// Attention by hand, step by step, with its full score matrix: what onepass is compared with.
#pragma once

#include <array>
#include <cstdint>

#include "cli/parts/array.h"
#include "core/problem.h"

namespace onepass::cli {

/// One step over all sequences and heads.
struct ManualStep {
  const char* name = "";
  double seconds = 0.0;
  std::int64_t bytes_moved = 0;  // each matrix read or written once
};

struct ManualRun {
  std::array<ManualStep, 4> steps;  // scores, scale and mask, softmax, output
  double seconds() const;
  std::int64_t bytes_moved() const;
};

/// Float32 throughout, whatever the problem's dtype: scores = q k^T, scaled, scored and masked,
/// softmax, times v. The mask is written out as a matrix of bytes beforehand, as frameworks take
/// it, and that is not timed.
class Manual {
 public:
  /// q, k, v contiguous float32 (b, s, h, d) of the problem's shapes. Throws Error when the score
  /// matrix finds no memory.
  Manual(const Problem& problem, const Array& q, const Array& k, const Array& v, int threads);

  /// o (b, s_q, h_q, d_v), float32.
  ManualRun run(float* o);

  /// Scores, mask and packed operands.
  std::int64_t bytes() const;

 private:
  void fill_mask();
  void scores();
  void scale_and_mask();
  void softmax();
  void output(float* o);

  const Problem& problem_;
  const Array &q_, &k_, &v_;
  int threads_;
  bool mask_varies_;  // one mask matrix for each (sequence, head), else one for all
  Array scores_;      // (b, h_q, s_q, s_kv)
  Array mask_;        // (b, h_q, s_q, s_kv) or (1, 1, s_q, s_kv), 1 = visible
  Array packed_;      // one operand a (sequence, key/value head)
};

}  // namespace onepass::cli
