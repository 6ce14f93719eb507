// Dropout: the weights that are kept are those of the written contract.
#include "conformance/checker.h"
#include "conformance/every_case.h"

namespace onepass::conformance {

Outcome d23_dropout_forward(const Settings& settings) {
  Checker checker(settings);
  Call call = generated({.b = 2, .h_q = 2, .h_kv = 2, .s_q = 64, .s_kv = 64, .d = 64, .d_v = 64});
  for (std::size_t i = 0; i < call.v.data.size(); ++i) {
    const auto key = i / 128 % 64, channel = i % 64;
    call.v.data[i] = key == channel ? 1.0 : 0.0;
  }
  const Answer undropped = checker.check(call);
  for (const std::uint64_t seed : {std::uint64_t{42}, 0xfedcba9876543210u}) {
    for (const DType dtype : float_dtypes) {
      Call dropped = call.in(dtype);
      dropped.dropout = {0.48, seed, std::uint64_t{3} << 31, 16, 48};
      const Answer answer = checker.check(dropped);
      if (!answer.ran) continue;
      const auto kept =
          reference::dropout_mask({0.48, seed, std::uint64_t{3} << 31, 16, 48}, 2, 2, 64, 64);
      std::size_t count = 0;
      for (std::size_t i = 0; i < answer.o.size(); ++i) {
        const std::size_t b = i / (64 * 2 * 64), row = i / 128 % 64, h = i / 64 % 2, key = i % 64;
        const bool keeps = kept[((b * 2 + h) * 64 + row) * 64 + key] != 0;
        count += answer.o[i] != 0.0;
        checker.expect(dropped, (answer.o[i] != 0.0) == keeps, "a weight is dropped or kept wrong");
      }
      // Four standard deviations of 16384 draws.
      checker.expect(dropped, count > 0.504 * 16384 && count < 0.536 * 16384, "kept fraction");
      if (dtype == DType::float32) checker.same(dropped, "lse", answer.lse, undropped.lse);
    }
  }
  // W03 in training: padded sequences of unequal lengths, p = 0.1.
  Call bert = generated({.b = 3, .h_q = 12, .h_kv = 12, .s_q = 96, .s_kv = 96, .d = 64, .d_v = 64});
  bert.mask = "lengths(n)";
  bert.arguments = {{"n", NamedArray{DType::int64, {3}, {96, 33, 1}}}};
  bert.dropout = {0.1, 1234, 0};
  for (const DType dtype : float_dtypes) checker.check(bert.in(dtype));
  return checker.outcome();
}

}  // namespace onepass::conformance
