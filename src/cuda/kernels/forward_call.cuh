// What every kernel of a forward is given.
//
// Before this text stand namespace config (element types, head dims, what the call has) and the
// generated texts of the mask and the score.
#pragma once
#include "cuda/kernels/call_parts.cuh"

namespace {

struct Forward {
  Strided q, k, v, o, lse, sink;
  int64 b, h_q, group, s_q, s_kv, q_start, k_start;
  uint64 seed, offset, threshold;
  int64 row0, col0;
  float scale, kept_scale;  // 1 / (1 - p)
  int64 section_heads;
};

struct Call {
  Forward forward;
  mask_text::Parameters mask;
  score_text::Parameters score;
};

}  // namespace
