// From logits to the next token.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace onepass::cli::llama {

class Sampler {
 public:
  /// temperature 0 = the most likely token. top_p < 1 keeps the smallest set of tokens whose
  /// probability reaches it (nucleus sampling, Holtzman et al. 2020).
  Sampler(double temperature, double top_p, std::uint64_t seed)
      : temperature_(temperature), top_p_(top_p), random_(seed) {}

  /// -1 where no logit is a number.
  std::int32_t next(std::span<const float> logits);

 private:
  double temperature_;
  double top_p_;
  std::mt19937_64 random_;
  std::vector<std::pair<double, std::int32_t>> weights_;
};

}  // namespace onepass::cli::llama
