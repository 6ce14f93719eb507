#include "cli/llama/sampler.h"

#include <algorithm>
#include <cmath>

namespace onepass::cli::llama {
namespace {

std::int32_t most_likely(std::span<const float> logits) {
  std::int32_t best = -1;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i])) continue;
    if (best < 0 || logits[i] > logits[static_cast<std::size_t>(best)]) {
      best = static_cast<std::int32_t>(i);
    }
  }
  return best;
}

}  // namespace

std::int32_t Sampler::next(std::span<const float> logits) {
  const std::int32_t best = most_likely(logits);
  if (best < 0 || temperature_ == 0.0) return best;
  const double top = logits[static_cast<std::size_t>(best)];
  if (!std::isfinite(top)) return best;
  weights_.clear();
  double total = 0.0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double weight = std::exp((logits[i] - top) / temperature_);
    if (!(weight > 0.0)) continue;
    weights_.emplace_back(weight, static_cast<std::int32_t>(i));
    total += weight;
  }
  if (top_p_ < 1.0) {
    std::sort(weights_.begin(), weights_.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    double kept = 0.0;
    std::size_t count = 0;
    while (count < weights_.size() && (count == 0 || kept < top_p_ * total)) {
      kept += weights_[count++].first;
    }
    weights_.resize(count);
    total = kept;
  }
  // 53 random bits make a number in [0, 1), the same on every machine.
  double left = static_cast<double>(random_() >> 11) * 0x1p-53 * total;
  for (const auto& [weight, token] : weights_) {
    left -= weight;
    if (left < 0.0) return token;
  }
  return weights_.back().second;
}

}  // namespace onepass::cli::llama
