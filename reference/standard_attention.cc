// Standard attention: three passes over an s_q x s_kv matrix that lives in slow memory.
#include "reference/teaching_memory.h"

namespace onepass::reference {
namespace {

// S = scale Q K^T, block by block.
void write_scores(const Lesson& l, const float* q, const float* k, float* s, Lecture& out,
                  bool first_head) {
  Door door(out.work);
  for (std::int64_t i = 0; i < blocks_of(l.s_q, l.block_q); ++i) {
    const Block rows = block_at(i, l.block_q, l.s_q);
    const auto q_block = door.load(q + rows.begin * l.d, rows.size() * l.d);
    for (std::int64_t j = 0; j < blocks_of(l.s_kv, l.block_k); ++j) {
      const Block keys = block_at(j, l.block_k, l.s_kv);
      const auto k_block = door.load(k + keys.begin * l.d, keys.size() * l.d);
      const auto s_block = score_block(l, rows, keys, q_block, k_block);
      for (std::int64_t row = 0; row < rows.size(); ++row) {
        const auto begin = s_block.begin() + row * keys.size();
        door.store({begin, begin + keys.size()}, s + (rows.begin + row) * l.s_kv + keys.begin);
      }
      if (first_head) out.order.push_back({i, j});
    }
  }
}

// P = softmax(S), row by row; a row without visible keys becomes 0.
void softmax_rows(const Lesson& l, float* s, Work& work) {
  Door door(work);
  for (std::int64_t row = 0; row < l.s_q; ++row) {
    auto p = door.load(s + row * l.s_kv, l.s_kv);
    float m = no_key, sum = 0.0f;
    for (float one : p) m = std::max(m, one);
    for (float& one : p) {
      one = one == no_key ? 0.0f : counted_exp(one - m, work);
      sum += one;
    }
    for (float& one : p) one = sum > 0.0f ? one / sum : 0.0f;
    door.store(p, s + row * l.s_kv);
  }
}

// O = P V, block by block.
void weigh_values(const Lesson& l, const float* p, const float* v, float* o, Work& work) {
  Door door(work);
  for (std::int64_t i = 0; i < blocks_of(l.s_q, l.block_q); ++i) {
    const Block rows = block_at(i, l.block_q, l.s_q);
    std::vector<float> o_block(static_cast<std::size_t>(rows.size() * l.d_v), 0.0f);
    for (std::int64_t j = 0; j < blocks_of(l.s_kv, l.block_k); ++j) {
      const Block keys = block_at(j, l.block_k, l.s_kv);
      const auto v_block = door.load(v + keys.begin * l.d_v, keys.size() * l.d_v);
      for (std::int64_t row = 0; row < rows.size(); ++row) {
        const auto weights = door.load(p + (rows.begin + row) * l.s_kv + keys.begin, keys.size());
        for (std::int64_t col = 0; col < keys.size(); ++col) {
          for (std::int64_t c = 0; c < l.d_v; ++c) {
            o_block[row * l.d_v + c] += weights[col] * v_block[col * l.d_v + c];
          }
        }
      }
    }
    door.store(o_block, o + rows.begin * l.d_v);
  }
}

}  // namespace

Lecture standard_attention(const Lesson& l, const float* q, const float* k, const float* v) {
  Lecture out;
  out.o.resize(static_cast<std::size_t>(l.heads * l.s_q * l.d_v));
  std::vector<float> s(static_cast<std::size_t>(l.s_q * l.s_kv));
  out.work.extra_bytes = static_cast<std::int64_t>(s.size() * sizeof(float));
  for (std::int64_t h = 0; h < l.heads; ++h) {
    write_scores(l, q + h * l.s_q * l.d, k + h * l.s_kv * l.d, s.data(), out, h == 0);
    softmax_rows(l, s.data(), out.work);
    weigh_values(l, s.data(), v + h * l.s_kv * l.d_v, out.o.data() + h * l.s_q * l.d_v, out.work);
  }
  return out;
}

}  // namespace onepass::reference
