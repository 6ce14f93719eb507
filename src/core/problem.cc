#include "core/problem.h"

namespace onepass {

std::int64_t StartOf::at(std::int64_t b) const {
  if (!array.given()) return number;
  const std::int64_t offset = b * array.strides[0];
  return array.dtype == DType::int64 ? static_cast<const std::int64_t*>(array.data)[offset]
                                     : static_cast<const std::int32_t*>(array.data)[offset];
}

lang::Scope Problem::scope(std::int64_t batch, std::int64_t head) const {
  return {.b = batch,
          .h = head,
          .h_kv = head / group,
          .s_q = s_q,
          .s_kv = s_kv,
          .q_start = q_start.at(batch),
          .k_start = k_start.at(batch),
          .token_q_start = batch * s_q,
          .token_k_start = batch * s_kv};
}

}  // namespace onepass
