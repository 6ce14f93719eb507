// What the structs of forward and backward calls are made of. Before this text stands namespace
// config, with what the call has.
#pragma once
#include "shared/philox.h"

namespace {

using namespace onepass_text;

struct Strided {
  void* data;
  int64 b, s, h, d;  // strides in elements
};

// What a call is about besides its tensors; every call's struct begins with it.
struct CallShape {
  int64 b, h_q, group, s_q, s_kv, q_start, k_start;
  uint64 seed, offset, threshold;
  int64 row0, col0;
  float scale, kept_scale;  // 1 / (1 - p)
};

template <class T>
__device__ T* place(const Strided& x, int64 b, int64 h) {
  return (T*)x.data + b * x.b + h * x.h;
}

// One (sequence, query head) as the generated texts see it.
__device__ Scope scope_of(const CallShape& f, int64 b, int64 h) {
  return {b, h, h / f.group, f.s_q, f.s_kv, f.q_start, f.k_start, b * f.s_q, b * f.s_kv};
}

__device__ void store(float* to, float x) { *to = x; }
__device__ void store(Bfloat16* to, float x) {
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(to->bits) : "f"(x));
}
__device__ void store(Float16* to, float x) {
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to->bits) : "f"(x));
}

// Whether dropout keeps the pair.
__device__ bool kept(const CallShape& f, const DropoutStream& stream, int64 row, int64 col) {
  if constexpr (!config::has_dropout) return true;
  row += f.row0, col += f.col0;
  const PhiloxWords words = dropout_words(stream, row, col);
  // Two selections: an index would put the words into local memory.
  const unsigned low = (col & 8) != 0 ? words.word[1] : words.word[0];
  const unsigned high = (col & 8) != 0 ? words.word[3] : words.word[2];
  return ((row & 8) != 0 ? high : low) >= f.threshold;
}

}  // namespace
