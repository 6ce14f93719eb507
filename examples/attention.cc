// Decoding over a cache: 2 sequences of different lengths in one buffer, 8 query heads that share
// 2 key/value heads, a mask with an array argument, a capped score and the log-sum-exp.
#include <onepass/onepass.h>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <vector>

int main() {
  const std::int64_t b = 2, h_q = 8, h_kv = 2, capacity = 512, d = 64;
  std::vector<float> q(b * h_q * d), k(b * capacity * h_kv * d), v(k.size()), o(q.size());
  std::vector<float> lse(b * h_q);
  for (std::size_t i = 0; i < q.size(); ++i) q[i] = std::sin(0.1f * i);
  for (std::size_t i = 0; i < k.size(); ++i) k[i] = std::cos(0.01f * i), v[i] = std::sin(0.03f * i);
  const std::int32_t lengths[] = {200, 512};

  onepass::Attention options;
  options.mask = "lengths(n)";
  options.score = "softcap(s, 30)";
  options.args = {{"n", onepass::TensorView(lengths, onepass::DType::int32, {b})}};
  options.lse = {lse.data(), {b, h_q, 1}};
  try {
    onepass::attention({q.data(), {b, 1, h_q, d}}, {k.data(), {b, capacity, h_kv, d}},
                       {v.data(), {b, capacity, h_kv, d}}, {o.data(), {b, 1, h_q, d}}, options);
  } catch (const onepass::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  for (std::int64_t i = 0; i < b; ++i)
    std::cout << "sequence " << i << ": o " << o[i * h_q * d] << ", lse " << lse[i * h_q] << '\n';
}
