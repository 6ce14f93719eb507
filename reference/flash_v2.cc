// FlashAttention-2, Algorithm 1 of Dao, "FlashAttention-2: Faster Attention with Better Parallelism
// and Work Partitioning" (2023). m and l are the running maximum and sum of a row.
#include "reference/teaching_memory.h"

namespace onepass::reference {
namespace {

// One row against one key block: O <- e^(m - m_new) O + P V, not divided by anything yet.
void step_row(const Lesson& lesson, std::int64_t keys, const float* s, const std::vector<float>& v,
              float* o, float& l, float& m, Work& work) {
  const std::int64_t d_v = lesson.d_v;
  float m_block = no_key;
  for (std::int64_t j = 0; j < keys; ++j) m_block = std::max(m_block, s[j]);
  if (m_block == no_key) return;  // nothing visible here for this row
  const float m_new = std::max(m, m_block);
  if (m != no_key) {  // the first block has no output to rescale
    const float alpha = counted_exp(m - m_new, work);
    l *= alpha;
    for (std::int64_t c = 0; c < d_v; ++c) o[c] *= alpha;
    work.rescalings += d_v;
  }
  for (std::int64_t j = 0; j < keys; ++j) {
    if (s[j] == no_key) continue;
    const float p = counted_exp(s[j] - m_new, work);
    l += p;
    for (std::int64_t c = 0; c < d_v; ++c) o[c] += p * v[j * d_v + c];
  }
  m = m_new;
}

}  // namespace

Lecture flash_v2(const Lesson& lesson, const float* q, const float* k, const float* v) {
  Lecture out;
  const std::int64_t s_q = lesson.s_q, d = lesson.d, d_v = lesson.d_v;
  out.o.resize(static_cast<std::size_t>(lesson.heads * s_q * d_v));
  Door door(out.work);
  for (std::int64_t h = 0; h < lesson.heads; ++h) {
    for (std::int64_t i = 0; i < blocks_of(s_q, lesson.block_q); ++i) {
      const Block rows = block_at(i, lesson.block_q, s_q);
      const auto q_block = door.load(q + (h * s_q + rows.begin) * d, rows.size() * d);
      std::vector<float> o_block(static_cast<std::size_t>(rows.size() * d_v), 0.0f);
      std::vector<float> l(static_cast<std::size_t>(rows.size()), 0.0f);
      std::vector<float> m(static_cast<std::size_t>(rows.size()), no_key);
      for (std::int64_t j = 0; j < blocks_of(lesson.s_kv, lesson.block_k); ++j) {
        const Block keys = block_at(j, lesson.block_k, lesson.s_kv);
        if (!any_visible(lesson, rows, keys)) break;
        if (h == 0) out.order.push_back({i, j});
        const auto k_block = door.load(k + (h * lesson.s_kv + keys.begin) * d, keys.size() * d);
        const auto v_block = door.load(v + (h * lesson.s_kv + keys.begin) * d_v, keys.size() * d_v);
        const auto s_block = score_block(lesson, rows, keys, q_block, k_block);
        for (std::int64_t row = 0; row < rows.size(); ++row) {
          step_row(lesson, keys.size(), s_block.data() + row * keys.size(), v_block,
                   o_block.data() + row * d_v, l[row], m[row], out.work);
        }
      }
      for (std::int64_t row = 0; row < rows.size(); ++row) {
        if (l[row] == 0.0f) continue;  // no visible key: o = 0
        for (std::int64_t c = 0; c < d_v; ++c) o_block[row * d_v + c] /= l[row];
        out.work.rescalings += d_v;
      }
      door.store(o_block, out.o.data() + (h * s_q + rows.begin) * d_v);
    }
  }
  return out;
}

}  // namespace onepass::reference
