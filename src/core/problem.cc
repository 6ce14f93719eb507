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

std::string Problem::line() const {
  const auto pair = [](std::int64_t a, std::int64_t b) {
    return std::to_string(a) + (a == b ? "" : "/" + std::to_string(b));
  };
  std::string text = std::string("fwd ") + name(dtype) + " b=" + std::to_string(b) +
                     " h=" + pair(h_q, h_kv) + " s=" + pair(s_q, s_kv) + " d=" + pair(d, d_v);
  if (has_mask) text += " mask=" + mask.text;
  if (has_score) text += " score=" + score.text;
  return text;
}

}  // namespace onepass
