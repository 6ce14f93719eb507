#include "core/problem.h"

namespace onepass {

std::int64_t integer_at(const TensorView& array, std::int64_t i) {
  const std::int64_t offset = i * array.strides[0];
  return array.dtype == DType::int64 ? static_cast<const std::int64_t*>(array.data)[offset]
                                     : static_cast<const std::int32_t*>(array.data)[offset];
}

std::int64_t StartOf::at(std::int64_t b) const {
  return array.given() ? integer_at(array, b) : number;
}

Sequence Problem::sequence(std::int64_t batch) const {
  Sequence at{.q_row = 0, .s_q = s_q, .k_row = 0, .s_kv = s_kv, .k_batch = batch};
  if (cu_seqlens_q.given()) {
    at.q_row = integer_at(cu_seqlens_q, batch);
    at.s_q = integer_at(cu_seqlens_q, batch + 1) - at.q_row;
  }
  if (cu_seqlens_k.given()) {
    at.k_row = integer_at(cu_seqlens_k, batch);
    at.s_kv = integer_at(cu_seqlens_k, batch + 1) - at.k_row;
  }
  if (seqused_k.given()) at.s_kv = integer_at(seqused_k, batch) + cache.s_new;
  if (cache.batch_idx.given()) at.k_batch = integer_at(cache.batch_idx, batch);
  if (cache.page_size > 0) {
    at.pages = static_cast<const std::int32_t*>(cache.block_table.data) +
               batch * cache.block_table.strides[0];
    at.page_stride = cache.block_table.strides[1];
  }
  return at;
}

lang::Scope Problem::scope(std::int64_t batch, std::int64_t head) const {
  const Sequence at = sequence(batch);
  return {.b = batch,
          .h = head,
          .h_kv = head / group,
          .s_q = at.s_q,
          .s_kv = at.s_kv,
          .q_start = ends_meet ? at.s_kv - at.s_q : q_start.at(batch),
          .k_start = k_start.at(batch),
          .token_q_start = cu_seqlens_q.given() ? at.q_row : batch * s_q,
          .token_k_start = cu_seqlens_k.given() ? at.k_row : batch * s_kv};
}

}  // namespace onepass
