// The call: o = softmax(mask(score(scale * q k^T))) v, exactly, in one pass.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "onepass/exec.h"
#include "onepass/status.h"
#include "onepass/tensor.h"

namespace onepass {

/// A named argument of the mask or score expression: a number or an array of 0 to 4 dims.
struct Argument {
  std::string name;
  std::variant<bool, std::int64_t, double, TensorView> value;
};

/// Which corner of the (query, key) rectangle the two sequences share when no position is given.
enum class Align : std::uint8_t { bottom_right, top_left };

/// First position of a sequence's queries or keys: one number, or int32/int64 of shape (b).
using Start = std::variant<std::int64_t, TensorView>;

/// Philox4x32-10 dropout on the normalised weights; docs/semantics.md has the contract.
struct Dropout {
  double p = 0.0;
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;
  /// Where this chunk lies in a longer problem; multiples of 16.
  std::int64_t row0 = 0;
  std::int64_t col0 = 0;
};

/// Everything a call says beyond its tensors. The default is plain full attention.
struct Attention {
  /// Expression of type bool, true = this key is visible (docs/expressions.md).
  std::string mask = "full";
  /// Expression of type float that gives the new logit from `s`; empty = `s`.
  std::string score{};
  /// Definitions of the caller's own, `name(a, b) = expression` each, separated by `;` or newlines.
  std::string definitions{};
  std::vector<Argument> args{};
  /// Default 1 / sqrt(d). Up to 2^252 either way (float64: any finite number); on a GPU what
  /// float32 holds.
  std::optional<double> scale{};
  /// One natural-unit logit per query head, shape (h_q), float32 (float64 for float64 inputs).
  TensorView sink{};
  Align align = Align::bottom_right;
  std::optional<Start> q_start{};
  std::optional<Start> k_start{};
  Dropout dropout{};
  /// Packed sequences: int32 or int64 (b + 1), from 0, not decreasing, ending at the tokens there
  /// are. q and o are then (t_q, h_q, d) and (t_q, h_q, d_v), lse (h_q, t_q); k and v (t_kv, h_kv,
  /// d) and (t_kv, h_kv, d_v). Either may be given without the other. Every mask, score, default
  /// position and dropout pair sees row, col, s_q and s_kv inside its own sequence; token_q and
  /// token_k count over the packed tensor.
  TensorView cu_seqlens_q{}, cu_seqlens_k{};
  /// Keys in use of each sequence, int32 or int64 (b); the rest is never read. With cu_seqlens_k or
  /// without.
  TensorView seqused_k{};
  /// Output: ln sum exp of the visible scores, shape (b, h_q, s_q), float32 (float64 for float64).
  TensorView lse{};
};

/// Exact attention (FlashAttention's online softmax, Dao et al. 2022; Milakov & Gimelshein 2018).
///
/// q (b, s_q, h_q, d), k (b, s_kv, h_kv, d), v (b, s_kv, h_kv, d_v), o (b, s_q, h_q, d_v); h_q a
/// multiple of h_kv; dtypes float64, float32, bfloat16 or float16, equal for q, k and v; o in the
/// same dtype or, for 16-bit inputs, float32; d and d_v at most 576. Any strides. Throws Error
/// before anything is written.
void attention(const TensorView& q, const TensorView& k, const TensorView& v, const TensorView& o,
               const Attention& options = {}, const Exec& exec = {});

/// Merges a partial result into another, in place: (o, lse) becomes the attention over both key
/// sets. o and o_other (b, s, h, d_v), any float dtype; lse and lse_other (b, h, s), float32 or
/// float64. (0, -inf) is neutral. A sink belongs in one of the parts only.
void merge(const TensorView& o, const TensorView& lse, const TensorView& o_other,
           const TensorView& lse_other, const Exec& exec = {});

/// "0.1.0"
const char* version();

}  // namespace onepass
