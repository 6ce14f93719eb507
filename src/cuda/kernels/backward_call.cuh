// What every kernel of a backward is given: inputs, gradients, statistics of the rows.
//
// Before this text stand namespace config (element types, head dims, what the call has) and the
// generated texts of the mask, the score and the score's slope, d score / d logit.
#pragma once
#include "cuda/kernels/call_parts.cuh"

namespace {

struct Backward : CallShape {
  Strided q, k, v, o, dout;
  Strided lse, dlse, sink;     // d unused; of sink only h
  Strided dq, dk, dv, dsink;   // data null = not asked for
  float *row_lse, *row_delta;  // (b, h_q, stat_rows), as the kernel backward_delta leaves them
  int64 stat_rows;
  // Tiles that a tensor-core kernel could not finish, for inputs that are not finite had to be left
  // out of its products: whether there are any; of (b, h_kv) of keys; of (b, h_q) of rows. They lie
  // together, so many ints in all; backward_delta clears them.
  int* again;
  unsigned char *again_keys, *again_rows;
  int64 again_ints;
  int64 section_heads;  // key/value heads whose data fits the second cache
};

struct Call {
  Backward backward;
  mask_text::Parameters mask;
  score_text::Parameters score;
  slope_text::Parameters slope;
};

// One (sequence, query head) as the generated texts and dropout see it.
struct Head {
  int64 b, h, h_kv;
  mask_text::PerScope mask;
  score_text::PerScope score;
  slope_text::PerScope slope;
  DropoutStream dropout;
  const float *lse, *delta;  // of its rows
};

__device__ Head head_of(const Call& call, int64 b, int64 h) {
  const Backward& f = call.backward;
  const Scope scope = scope_of(f, b, h);
  const int64 rows = (b * f.h_q + h) * f.stat_rows;
  return {b,
          h,
          scope.h_kv,
          mask_text::per_scope(call.mask, scope),
          score_text::per_scope(call.score, scope),
          slope_text::per_scope(call.slope, scope),
          dropout_stream(f.seed, f.offset, b, h),
          f.row_lse + rows,
          f.row_delta + rows};
}

}  // namespace
