// A validated call: everything the planner and the kernels need, in one plain struct.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lang/program.h"
#include "onepass/backward.h"
#include "onepass/status.h"

namespace onepass {

/// First position of a sequence: a number, or an int32/int64 array of shape (b) read at run time.
struct StartOf {
  std::int64_t number = 0;
  TensorView array;  // given() when per sequence
  std::int64_t at(std::int64_t b) const;
};

/// An element of an int32 or int64 array of one dim.
std::int64_t integer_at(const TensorView& array, std::int64_t i);

/// Where a sequence lies: rows of q, o and lse, and rows of k and v, along the s dim of their
/// views.
struct Sequence {
  std::int64_t q_row = 0, s_q = 0;
  std::int64_t k_row = 0, s_kv = 0;
  std::int64_t k_batch = 0;  // its place along the b dim of k and v
  // Where the cache is paged: the page of its keys [i * page_size, (i + 1) * page_size) is
  // pages[i * page_stride], and k_row and k_batch say nothing.
  const std::int32_t* pages = nullptr;
  std::int64_t page_stride = 1;
};

/// What a call over a cache (onepass/kv_cache.h) has beyond k, v and lengths in seqused_k.
struct CacheUse {
  bool given = false;
  std::int64_t page_size = 0;  // 0 = contiguous
  TensorView block_table;      // int32 (b, blocks) where paged
  TensorView batch_idx;        // (b) or not given
  std::int64_t s_new = 0;      // keys appended to each sequence
  TensorView k_new, v_new;     // (b, s_new, h_kv, d) and d_v
  TensorView cos, sin;         // rotary, (positions, rotary_dim / 2) or not given
  bool interleaved = false;
};

/// One place where the score reads an array whose gradient is asked for.
struct ArrayTerm {
  std::int64_t darg = 0;  // in Problem::dargs
  lang::Program factor;   // d score / d (element read)
  lang::Program place;    // row-major number of the element, as a float; -1 = outside
  bool own_head = false;  // no element is read by two (sequence, key/value head)
  bool own_key = false;   // no element is read by two keys of a head
  bool own_pair = false;  // no element is read here by two pairs of a head
};

enum class Pass : std::uint8_t { forward, backward };

struct Problem {
  Pass pass = Pass::forward;
  DType dtype = DType::float32;
  DType out_dtype = DType::float32;
  Device device;
  std::int64_t b = 0, h_q = 0, h_kv = 0, group = 1;
  std::int64_t s_q = 0, s_kv = 0;  // the most a sequence can have: where packed, all tokens
  std::int64_t d = 0, d_v = 0;
  // Packed tensors have b = 1 with stride 0: a sequence is a range of rows.
  TensorView q, k, v;                     // (b, s, h, d)
  TensorView o;                           // (b, s_q, h_q, d_v)
  TensorView lse;                         // (b, h_q, s_q) or not given
  TensorView cu_seqlens_q, cu_seqlens_k;  // (b + 1) where packed
  TensorView seqused_k;                   // (b) or not given
  CacheUse cache;   // k and v are then (b_cache, capacity, h, d) or (pages, page_size, h, d)
  TensorView sink;  // (h_q) or not given
  // Backward only: o and lse are inputs; gradients that are not given are not asked for.
  TensorView dout, dlse;         // shaped as o and lse; dlse may be not given
  TensorView dq, dk, dv, dsink;  // shaped as q, k, v and sink
  std::vector<ArgumentGradient> dargs;
  std::vector<ArrayTerm> terms;  // of the score, for dargs
  double scale = 1.0;
  lang::Program mask;
  lang::Program score;
  lang::Program slope;         // d score / d logit, where a backward has a score
  std::string definitions;     // the caller's, for line() only
  std::vector<Argument> args;  // the caller's, for line() only
  bool has_mask = false;       // false = every key is visible
  bool has_score = false;      // false = the logit itself
  StartOf q_start, k_start;
  bool ends_meet = false;  // q_start is s_kv - s_q of each sequence
  Dropout dropout;

  /// Lengths differ by sequence and are read at run time.
  bool varlen() const { return cu_seqlens_q.given() || cu_seqlens_k.given() || seqused_k.given(); }
  Sequence sequence(std::int64_t batch) const;
  lang::Scope scope(std::int64_t batch, std::int64_t head) const;
  /// `fwd bf16 b=2 h=32/8 s=4096/4096 d=128 mask=causal`
  std::string line() const;
};

/// Checks shapes, dtypes, strides and options and compiles both expressions. Reads no memory, so
/// that a call can be planned before its tensors exist. Of a backward, what it shares with the
/// forward: validate_backward (core/backward.h) does the rest.
Result<Problem> validate(const TensorView& q, const TensorView& k, const TensorView& v,
                         const TensorView& o, const Attention& options, Pass pass = Pass::forward);

/// Checks pointers and the values of host arrays: the rest of what the host can see, before a
/// launch.
Status validate_memory(const Problem& problem);

}  // namespace onepass
