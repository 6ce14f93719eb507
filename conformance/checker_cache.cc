// A call over a cache: its output, what it appended, what it left alone.
#include "conformance/checker.h"
#include "conformance/comparison.h"

namespace onepass::conformance {

CacheAnswer Checker::run(const CacheCall& call) {
  ++calls_;
  CacheAnswer answer = conformance::run(call, settings_.threads);
  if (settings_.device.kind == Device::Kind::cuda) {
    answer.answer.ran = false, answer.answer.code = Code::not_supported;
    answer.answer.error = "cache: attention_kvcache runs on the CPU so far";
  }
  take(call, answer.answer.ran, answer.answer.code, answer.answer.error);
  if (!answer.answer.guards_held) fail(call, "wrote outside o or lse");
  if (!answer.rest_kept) fail(call, "wrote to the cache outside the new slots");
  return answer;
}

CacheAnswer Checker::check(const CacheCall& call) {
  CacheAnswer answer = run(call);
  if (!answer.answer.ran) return answer;
  const Call joined = call.joined();
  // Rotated in float32, an element of q may be rounded to 16 bits the other way.
  const bool may_tip = call.rotary_pairs > 0 && sixteen_bits(call.call.dtype);
  matches(joined, answer.answer, may_tip ? 4e-3 : 1e-3);
  for (std::int64_t b = 0; b < joined.k.shape[0]; ++b) {
    const std::int64_t first = call.lengths[static_cast<std::size_t>(b)];
    const auto added = [&](const reference::Tensor& like, std::span<const double> values) {
      const std::int64_t line = like.shape[2] * like.shape[3];
      return values.subspan(static_cast<std::size_t>((b * like.shape[1] + first) * line),
                            static_cast<std::size_t>(call.s_new() * line));
    };
    same(call, "appended v", added(joined.v, answer.v), added(joined.v, joined.v.data));
    if (call.rotary_pairs == 0) {
      same(call, "appended k", added(joined.k, answer.k), added(joined.k, joined.k.data));
    } else {
      close(call, "appended k", added(joined.k, answer.k), added(joined.k, joined.k.data),
            closed_form_tolerance(call.call.dtype) / 2);
    }
  }
  return answer;
}

}  // namespace onepass::conformance
