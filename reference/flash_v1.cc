// FlashAttention, Algorithm 1 of Dao et al., "FlashAttention: Fast and Memory-Efficient Exact
// Attention with IO-Awareness" (2022). Names follow the paper: m and l are the running maximum and
// sum of a row, m_tilde and l_tilde those of one block.
#include "reference/teaching_memory.h"

namespace onepass::reference {
namespace {

// One row against one key block: O <- (l e^(m - m_new) O + e^(m_tilde - m_new) P_tilde V) / l_new.
void step_row(const Lesson& lesson, std::int64_t keys, const float* s, const std::vector<float>& v,
              float* o, float& l, float& m, Work& work) {
  const std::int64_t d_v = lesson.d_v;
  float m_tilde = no_key, l_tilde = 0.0f;
  for (std::int64_t j = 0; j < keys; ++j) m_tilde = std::max(m_tilde, s[j]);
  if (m_tilde == no_key) return;  // nothing visible here for this row
  std::vector<float> pv(static_cast<std::size_t>(d_v), 0.0f);
  for (std::int64_t j = 0; j < keys; ++j) {
    if (s[j] == no_key) continue;
    const float p = counted_exp(s[j] - m_tilde, work);
    l_tilde += p;
    for (std::int64_t c = 0; c < d_v; ++c) pv[c] += p * v[j * d_v + c];
  }
  const float m_new = std::max(m, m_tilde);
  const float old_part = l * counted_exp(m - m_new, work);
  const float new_part = counted_exp(m_tilde - m_new, work);
  const float l_new = old_part + new_part * l_tilde;
  for (std::int64_t c = 0; c < d_v; ++c) {
    o[c] = old_part / l_new * o[c] + new_part / l_new * pv[c];
  }
  work.rescalings += 2 * d_v;  // of the old output and of this block's
  l = l_new;
  m = m_new;
}

}  // namespace

Lecture flash_v1(const Lesson& lesson, const float* q, const float* k, const float* v) {
  Lecture out;
  const std::int64_t s_q = lesson.s_q, d = lesson.d, d_v = lesson.d_v;
  out.o.assign(static_cast<std::size_t>(lesson.heads * s_q * d_v), 0.0f);
  std::vector<float> l(static_cast<std::size_t>(s_q)), m(static_cast<std::size_t>(s_q));
  out.work.extra_bytes = static_cast<std::int64_t>((l.size() + m.size()) * sizeof(float));
  Door door(out.work);
  for (std::int64_t h = 0; h < lesson.heads; ++h) {
    const float* q_head = q + h * s_q * d;
    float* o_head = out.o.data() + h * s_q * d_v;
    std::fill(l.begin(), l.end(), 0.0f);
    std::fill(m.begin(), m.end(), no_key);
    for (std::int64_t j = 0; j < blocks_of(lesson.s_kv, lesson.block_k); ++j) {
      const Block keys = block_at(j, lesson.block_k, lesson.s_kv);
      const auto k_block = door.load(k + (h * lesson.s_kv + keys.begin) * d, keys.size() * d);
      const auto v_block = door.load(v + (h * lesson.s_kv + keys.begin) * d_v, keys.size() * d_v);
      for (std::int64_t i = 0; i < blocks_of(s_q, lesson.block_q); ++i) {
        const Block rows = block_at(i, lesson.block_q, s_q);
        if (!any_visible(lesson, rows, keys)) continue;
        if (h == 0) out.order.push_back({i, j});
        const auto q_block = door.load(q_head + rows.begin * d, rows.size() * d);
        auto o_block = door.load(o_head + rows.begin * d_v, rows.size() * d_v);
        auto l_block = door.load(l.data() + rows.begin, rows.size());
        auto m_block = door.load(m.data() + rows.begin, rows.size());
        const auto s_block = score_block(lesson, rows, keys, q_block, k_block);
        for (std::int64_t row = 0; row < rows.size(); ++row) {
          step_row(lesson, keys.size(), s_block.data() + row * keys.size(), v_block,
                   o_block.data() + row * d_v, l_block[row], m_block[row], out.work);
        }
        door.store(o_block, o_head + rows.begin * d_v);
        door.store(l_block, l.data() + rows.begin);
        door.store(m_block, m.data() + rows.begin);
      }
    }
  }
  return out;
}

}  // namespace onepass::reference
