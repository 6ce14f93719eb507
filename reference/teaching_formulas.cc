// The papers' counts in closed form. With blocks of M / 4d rows these are
//   standard          O(s d + s^2)      bytes (each S and P element crosses once each way)
//   FlashAttention    O(s^2 d^2 / M)    bytes
// and v1 rescales the output twice at every step where v2 does it once.
#include "reference/teaching_memory.h"

namespace onepass::reference {
namespace {

constexpr std::int64_t float_bytes = sizeof(float);

/// What the loops visit, summed without looking at any score.
struct Visits {
  std::int64_t pairs = 0;           // visible (row, col) pairs
  std::int64_t row_steps = 0;       // (row, key block) with a visible key
  std::int64_t live_rows = 0;       // rows with a visible key
  std::int64_t rows = 0, keys = 0;  // of the visited (query block, key block) pairs
};

Visits count_visits(const Lesson& l) {
  Visits visits;
  for (std::int64_t row = 0; row < l.s_q; ++row) {
    // Visible keys of a row are a prefix.
    const std::int64_t reach =
        l.causal ? std::clamp<std::int64_t>(row + l.s_kv - l.s_q + 1, 0, l.s_kv) : l.s_kv;
    visits.pairs += reach;
    visits.row_steps += blocks_of(reach, l.block_k);
    visits.live_rows += reach > 0;
  }
  for (std::int64_t first = 0; first < l.s_q; first += l.block_q) {
    const std::int64_t end = std::min(first + l.block_q, l.s_q);
    const std::int64_t reach =
        l.causal ? std::clamp<std::int64_t>(end - 1 + l.s_kv - l.s_q + 1, 0, l.s_kv) : l.s_kv;
    const std::int64_t steps = blocks_of(reach, l.block_k);
    visits.rows += (end - first) * steps;
    visits.keys += std::min(steps * l.block_k, l.s_kv);
  }
  return visits;
}

}  // namespace

Work predict_standard(const Lesson& l) {
  const std::int64_t matrix = l.s_q * l.s_kv;
  const std::int64_t q_blocks = blocks_of(l.s_q, l.block_q);
  Work work;
  // Q once, K and V once for each block of Q, S read by the softmax and P by the product.
  work.bytes_read =
      float_bytes * l.heads * (l.s_q * l.d + q_blocks * l.s_kv * (l.d + l.d_v) + 2 * matrix);
  work.bytes_written = float_bytes * l.heads * (2 * matrix + l.s_q * l.d_v);
  work.exponentials = l.heads * count_visits(l).pairs;
  work.extra_bytes = float_bytes * matrix;
  return work;
}

Work predict_flash_v1(const Lesson& l) {
  const Visits visits = count_visits(l);
  Work work;
  // K and V once; Q, O, l and m of every visited block in, O, l and m out.
  work.bytes_read =
      float_bytes * l.heads * (l.s_kv * (l.d + l.d_v) + visits.rows * (l.d + l.d_v + 2));
  work.bytes_written = float_bytes * l.heads * visits.rows * (l.d_v + 2);
  work.exponentials = l.heads * (visits.pairs + 2 * visits.row_steps);
  work.rescalings = l.heads * 2 * l.d_v * visits.row_steps;
  work.extra_bytes = float_bytes * 2 * l.s_q;
  return work;
}

Work predict_flash_v2(const Lesson& l) {
  const Visits visits = count_visits(l);
  Work work;
  // Q once, K and V of every visited block; O out once.
  work.bytes_read = float_bytes * l.heads * (l.s_q * l.d + visits.keys * (l.d + l.d_v));
  work.bytes_written = float_bytes * l.heads * l.s_q * l.d_v;
  const std::int64_t later_steps = visits.row_steps - visits.live_rows;
  work.exponentials = l.heads * (visits.pairs + later_steps);
  work.rescalings = l.heads * l.d_v * (later_steps + visits.live_rows);
  return work;
}

}  // namespace onepass::reference
