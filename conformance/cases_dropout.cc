// Dropout: the weights that are kept are those of the written contract, forward and backward.
#include <algorithm>
#include <cmath>

#include "conformance/checker.h"
#include "conformance/every_case.h"
#include "onepass/backward.h"

namespace onepass::conformance {
namespace {

// Which of the 2 x 2 x 64 x 64 weights are not 0, in the order (b, h, row, key).
std::vector<bool> pattern(std::span<const double> by_row_head_key) {
  std::vector<bool> kept(by_row_head_key.size());
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const std::size_t b = i / (64 * 2 * 64), row = i / 128 % 64, h = i / 64 % 2, key = i % 64;
    kept[((b * 2 + h) * 64 + row) * 64 + key] = by_row_head_key[i] != 0.0;
  }
  return kept;
}

}  // namespace

Outcome d23_dropout(const Settings& settings) {
  Checker checker(settings);
  Call call = generated({.b = 2, .h_q = 2, .h_kv = 2, .s_q = 64, .s_kv = 64, .d = 64, .d_v = 64});
  for (std::size_t i = 0; i < call.v.data.size(); ++i) {
    const auto key = i / 128 % 64, channel = i % 64;
    call.v.data[i] = key == channel ? 1.0 : 0.0;
  }
  // Nothing underflows to 0 in 16 bits, so that a 0 is a dropped weight.
  for (double& value : call.q.data) value /= 8.0;
  std::vector<std::vector<bool>> seen;
  for (const std::uint64_t seed : {std::uint64_t{42}, 0xfedcba9876543210u}) {
    for (const DType dtype : float_dtypes) {
      BackwardCall dropped = backward_of(call.in(dtype));
      dropped.dout.data = dropped.call.v.data;  // the identity
      const Gradients undropped = checker.check(dropped);
      dropped.call.dropout = {0.0, seed, 7, 0, 0};
      checker.same(dropped, checker.run(dropped), undropped);
      dropped.call.dropout = {0.48, seed, std::uint64_t{3} << 31, 16, 48};
      const Gradients gradients = checker.check(dropped);
      if (!gradients.ran) continue;
      checker.same(dropped, "lse", gradients.forward.lse, undropped.forward.lse);
      const std::vector<double>& o = gradients.forward.o;
      const auto kept = pattern(o);
      const auto contract =
          reference::dropout_mask({0.48, seed, std::uint64_t{3} << 31, 16, 48}, 2, 2, 64, 64);
      checker.expect(dropped, std::equal(kept.begin(), kept.end(), contract.begin()),
                     "a weight is dropped or kept wrong");
      // Four standard deviations of 16384 draws.
      const auto count = static_cast<double>(std::count(kept.begin(), kept.end(), true));
      checker.expect(dropped, count > 0.504 * 16384 && count < 0.536 * 16384, "kept fraction");
      // dv = (P Z)^T as dO is the identity, o = P Z as v is.
      std::vector<double> transposed(o.size());
      bool same_zeros = true;
      for (std::size_t i = 0; i < o.size(); ++i) {
        const std::size_t b = i / (64 * 2 * 64), row = i / 128 % 64, h = i / 64 % 2, key = i % 64;
        transposed[((b * 64 + key) * 2 + h) * 64 + row] = o[i];
      }
      for (std::size_t i = 0; i < o.size(); ++i) {
        same_zeros = same_zeros && (transposed[i] == 0.0) == (gradients.dv[i] == 0.0);
      }
      checker.expect(dropped, same_zeros, "the backward drops other weights than the forward");
      checker.close(dropped, "dv", gradients.dv, transposed, closed_form_tolerance(dtype));
      if (dtype != DType::float32) continue;
      for (std::size_t head = 0; head < 4; ++head) {
        const auto begin = kept.begin() + static_cast<std::ptrdiff_t>(head * 4096);
        seen.emplace_back(begin, begin + 4096);
      }
    }
  }
  std::sort(seen.begin(), seen.end());
  checker.expect(call, std::adjacent_find(seen.begin(), seen.end()) == seen.end(),
                 "two heads, sequences or calls drop the same weights");
  return checker.outcome();
}

// Over 2^24 draws the kept share lies within 4 standard deviations of 1 - p.
Outcome dropout_share(const Settings& settings) {
  Checker checker(settings);
  const Call call = generated({.s_q = 1, .s_kv = 1, .d = 1, .d_v = 1});
  checker.check(call);
  constexpr std::int64_t b = 2, h = 8, s = 1024, draws = b * h * s * s;
  std::vector<std::uint8_t> kept(draws);
  for (const double p : {0.001, 0.1, 0.5}) {
    const Dropout dropout{p, 20240229, 3};
    dropout_mask(TensorView(kept.data(), DType::uint8, {b, h, s, s}), dropout);
    const auto count = std::count(kept.begin(), kept.end(), std::uint8_t{1});
    const double share = static_cast<double>(count) / static_cast<double>(draws);
    const double sigma = std::sqrt(p * (1.0 - p) / static_cast<double>(draws));
    checker.close(call, "kept share", share, 1.0 - p, 4.0 * sigma);
  }
  return checker.outcome();
}

}  // namespace onepass::conformance
