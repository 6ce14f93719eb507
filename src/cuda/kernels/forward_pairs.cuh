// What happens to single pairs of a tile: score, mask, dropout. Row and key meet here only.
#pragma once
#include "cuda/kernels/dropout_pairs.cuh"
#include "cuda/kernels/forward_fragments.cuh"

namespace {

// One (sequence, query head) as the generated texts and dropout see it.
struct Head {
  int64 b, h;
  mask_text::PerScope mask;
  score_text::PerScope score;
  DropoutStream dropout;
};

__device__ Head head_of(const Call& call, int64 b, int64 h) {
  const Scope scope = scope_of(call.forward, b, h);
  return {b, h, mask_text::per_scope(call.mask, scope), score_text::per_scope(call.score, scope),
          dropout_stream(call.forward.seed, call.forward.offset, b, h)};
}

// Where a lane's fragments lie: rows row + 16 i and row + 16 i + 8, cols col + 8 j and + 1.
struct Place {
  int row, col;
};

// rS = score(scale rS)
__device__ void score_pairs(const Call& call, const Head& head, Place at, Logits& rS) {
  score_text::PerRow rows[row_blocks][2];
#pragma unroll
  for (int i = 0; i < 2 * row_blocks; ++i) {
    rows[i / 2][i % 2] = score_text::per_row(call.score, head.score, at.row + 8 * i);
  }
#pragma unroll
  for (int j = 0; j < 2 * key_blocks; ++j) {
    const auto key = score_text::per_key(call.score, head.score, at.col + j / 2 * 8 + j % 2);
#pragma unroll
    for (int i = 0; i < 2 * row_blocks; ++i) {
      float& s = rS[i / 2][j / 2][i % 2 * 2 + j % 2];
      s = score_text::value(call.score, head.score, rows[i / 2][i % 2], key,
                            call.forward.scale * s);
    }
  }
}

// rS = -inf where hidden or beyond the keys
__device__ void hide_pairs(const Call& call, const Head& head, Place at, Logits& rS) {
  mask_text::PerRow rows[row_blocks][2];
#pragma unroll
  for (int i = 0; i < 2 * row_blocks; ++i) {
    rows[i / 2][i % 2] = mask_text::per_row(call.mask, head.mask, at.row + 8 * i);
  }
#pragma unroll
  for (int j = 0; j < 2 * key_blocks; ++j) {
    const int col = at.col + j / 2 * 8 + j % 2;
    const auto key = mask_text::per_key(call.mask, head.mask, col);
#pragma unroll
    for (int i = 0; i < 2 * row_blocks; ++i) {
      const bool visible = col < call.forward.s_kv &&
                           mask_text::value(call.mask, head.mask, rows[i / 2][i % 2], key);
      float& s = rS[i / 2][j / 2][i % 2 * 2 + j % 2];
      s = visible ? s : -infinity();
    }
  }
}

// rP = 0 where dropped. A lane has all four pairs of a Philox counter.
template <int blocks>
__device__ void drop_pairs(const Call& call, const Head& head, Place at,
                           float (&rP)[row_blocks][blocks][4]) {
  const Forward& f = call.forward;
  const unsigned last_dropped = (unsigned)(f.threshold - 1);  // 32 bits hold it where p > 0
  DropoutRow rows[row_blocks];
#pragma unroll
  for (int row = 0; row < row_blocks; ++row) {
    rows[row] = dropout_row(head.dropout, f.row0 + at.row + 16 * row);
  }
#pragma unroll
  for (int j = 0; j < blocks; ++j) {
    const int key = j / 2 * 2, i = j % 2;
    const DropoutCol col = dropout_col(head.dropout, f.col0 + at.col + 8 * key + i);
#pragma unroll
    for (int row = 0; row < row_blocks; ++row) {
      const PhiloxWords words = dropout_words(head.dropout, rows[row], col);
#pragma unroll
      for (int word = 0; word < 4; ++word) {
        float& p = rP[row][key + word % 2][word / 2 * 2 + i];
        p = words.word[word] > last_dropped ? p : 0.0f;
      }
    }
  }
}

// The tile's columns: those that some row may see, and those that every row sees.
struct Limits {
  int first, last, full_first, full_last;
};

// What a row that sees [first, last] adds to the limits of all.
__device__ void add_row(Limits& all, int first, int last, int end) {
  const bool empty = first > last;
  if (!empty) atomicMin(&all.first, first);
  if (!empty) atomicMax(&all.last, last);
  atomicMax(&all.full_first, empty ? end : first);
  atomicMin(&all.full_last, last);
}

// Of all threads together. `Row`: mask_text::PerRow, whose limits not every mask has.
template <class Row>
__device__ void find_limits(const Call& call, const Head& head, int row0, Limits& shared) {
  const int rows = (int)call.forward.s_q, end = (int)call.forward.s_kv;
  constexpr bool limited = mask_text::has_limits;
  constexpr bool may_be_full = limited ? mask_text::only_limits : !config::has_mask;
  if (threadIdx.x == 0) {
    shared = {limited ? end : 0, limited ? -1 : end - 1, 0, may_be_full ? end - 1 : -1};
  }
  __syncthreads();
  if constexpr (limited) {
    for (int i = threadIdx.x; i < config::tile_rows && row0 + i < rows; i += threads) {
      const Row row = mask_text::per_row(call.mask, head.mask, row0 + i);
      add_row(shared, higher(row.first, 0), lower(row.last, end - 1), end);
    }
    __syncthreads();
  }
}

}  // namespace
