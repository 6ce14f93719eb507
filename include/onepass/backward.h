// The gradient of a call: dq, dk, dv, and where asked for those of the sink and of score arrays.
#pragma once

#include <string>
#include <vector>

#include "onepass/attention.h"
#include "onepass/plan.h"

namespace onepass {

/// Where the gradient of one float array argument of the score goes: the argument's own shape (a
/// dim of size 1 that broadcasts is summed over), float32 (float64 for float64 inputs).
struct ArgumentGradient {
  std::string name;
  TensorView gradient;
};

/// What the backward reads beyond q, k and v, and what it writes. Outputs that are not given are
/// not computed.
struct Backward {
  TensorView o;           // of the forward: (b, s_q, h_q, d_v)
  TensorView lse;         // of the forward: (b, h_q, s_q)
  TensorView dout;        // shaped as o, any strides, the dtype of q or of o
  TensorView dlse;        // optional: gradient through lse, shaped and typed as lse
  TensorView dq, dk, dv;  // shaped as q, k, v; the dtype of q or float32
  TensorView dsink;       // (h_q), dtype of sink
  std::vector<ArgumentGradient> dargs;
};

/// Gradients of attention() with the same options (FlashAttention-2's backward: scores recomputed
/// tile by tile from lse; Dao 2023). Sums in float32 (float64 for float64), in a fixed order:
/// results do not depend on the thread count. `options.lse` is not used. Throws Error before
/// anything is written.
void attention_backward(const TensorView& q, const TensorView& k, const TensorView& v,
                        const Backward& backward, const Attention& options = {},
                        const Exec& exec = {});

/// Plans a call without touching memory: data pointers may be null.
Plan plan_backward(const TensorView& q, const TensorView& k, const TensorView& v,
                   const Backward& backward, const Attention& options = {}, int threads = 0);

/// Plans it with its kernels ready on the device (onepass/plan.h).
Plan prepare_backward(const TensorView& q, const TensorView& k, const TensorView& v,
                      const Backward& backward, const Attention& options = {}, int threads = 0);

/// The pairs that dropout keeps, into mask (b, h_q, s_q, s_kv), bool or uint8: 1 = kept. The mask
/// may lie on a GPU: it is then written in order on exec.stream.
void dropout_mask(const TensorView& mask, const Dropout& dropout, const Exec& exec = {});

}  // namespace onepass
