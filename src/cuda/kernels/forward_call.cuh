// What every kernel of a forward is given.
//
// Before this text stand namespace config (element types, head dims, what the call has) and the
// generated texts of the mask and the score.
#pragma once
#include "cuda/kernels/call_parts.cuh"

namespace {

struct Forward : CallShape {
  Strided q, k, v, o, lse, sink;
  int64 section_heads;
};

struct Call {
  Forward forward;
  mask_text::Parameters mask;
  score_text::Parameters score;
};

}  // namespace
