// Parts of a result: merging, split keys, repeatability, scales.
#include <cmath>

#include "conformance/checker.h"
#include "conformance/every_case.h"
#include "conformance/generator.h"
#include "conformance/merged.h"

namespace onepass::conformance {
namespace {

// The same call over keys [begin, end) only, without its sink.
Call part_of(const Call& whole, std::int64_t begin, std::int64_t end) {
  Call part = whole;
  const Shape s = whole.shape();
  for (reference::Tensor Call::*tensor : {&Call::k, &Call::v}) {
    reference::Tensor& cut = part.*tensor;
    const std::int64_t row = cut.shape[2] * cut.shape[3];
    cut.data.clear();
    for (std::int64_t b = 0; b < s.b; ++b) {
      const auto from = (whole.*tensor).data.begin() + b * s.s_kv * row;
      cut.data.insert(cut.data.end(), from + begin * row, from + end * row);
    }
    cut.shape[1] = end - begin;
  }
  part.q_start = {s.s_kv - s.s_q};
  part.k_start = {begin};
  part.sink.clear();
  part.out_dtype = whole.dtype == DType::float64 ? DType::float64 : DType::float32;
  return part;
}

}  // namespace

Outcome d17_merge(const Settings& settings) {
  Checker checker(settings);
  Call causal = generated({.s_q = 6, .s_kv = 2, .d = 8, .d_v = 8});
  causal.mask = "causal";
  const Answer empty_rows = checker.check(causal);
  for (std::size_t row = 0; row < 4 && empty_rows.ran; ++row) {
    checker.same(causal, "lse", std::span(empty_rows.lse).subspan(row, 1),
                 std::vector<double>{-infinity});
  }
  Call lengths = generated({.b = 2, .s_q = 3, .s_kv = 2, .d = 8, .d_v = 8});
  lengths.mask = "lengths(n)";
  lengths.arguments = {{"n", NamedArray{DType::int32, {2}, {0, 2}}}};
  checker.check(lengths);

  const Call small = generated({.s_q = 2, .s_kv = 1, .d = 4, .d_v = 3});
  const Part nothing{std::vector<double>(6, 0.0), {-infinity, -infinity}};
  const Part x{{1, -2, 3.5, 0.25, 7, -0.5}, {1.5, -20}};
  for (const DType dtype : float_dtypes) {
    for (const auto& [a, b, want] :
         {std::tuple{nothing, nothing, nothing}, {x, nothing, x}, {nothing, x, x}}) {
      const Part got = merged(checker, small, dtype, a, b);
      checker.same(small, "merged o", got.o, want.o);
      checker.same(small, "merged lse", got.lse, want.lse);
    }
  }
  // The kind: any cut of the keys, parts without visible keys, sinks, far apart lse.
  for (const char* mask : {"full", "causal", "window(3, 2)", "chunked(32)"}) {
    for (const std::int64_t cut : {0, 1, 5, 64, 99, 100}) {
      for (const DType dtype : float_dtypes) {
        for (const bool sink : {false, true}) {
          Call whole =
              generated({.b = 2, .h_q = 4, .h_kv = 2, .s_q = 70, .s_kv = 100, .d = 16, .d_v = 5})
                  .in(dtype);
          whole.out_dtype = dtype == DType::float64 ? DType::float64 : DType::float32;
          whole.mask = mask;
          if (sink) whole.sink = {0.5, -3, 9, -infinity};
          Call first = part_of(whole, 0, cut);
          const Call second = part_of(whole, cut, 100);
          first.sink = whole.sink;  // in one part only
          const Answer a = checker.run(first), b = checker.run(second);
          if (!a.ran || !b.ran) continue;
          const Part both = merged(checker, whole, whole.out_dtype, {a.o, a.lse}, {b.o, b.lse});
          Answer answer;
          answer.o = both.o, answer.lse = both.lse;
          checker.matches(whole, answer);
        }
      }
    }
  }
  return checker.outcome();
}

Outcome d18_one_query_many_keys(const Settings& settings) {
  Checker checker(settings);
  const Call one = generated({.s_q = 1, .s_kv = 257, .d = 32, .d_v = 32});
  const Answer answer = checker.check(one);
  if (answer.ran) {
    checker.probe(one, "o[0]", answer.o[0], -0.0360561663);
    checker.probe(one, "o[31]", answer.o[31], -0.00698717065);
    checker.probe(one, "lse", answer.lse[0], 6.17545486);
    checker.probe(one, "sum |o|", sum_abs(answer.o), 1.66390265);
  }
  // The kind: key counts round every likely split, and the same bits from any number of threads.
  for (const std::int64_t keys : {1, 2, 31, 33, 255, 256, 511, 513, 1023, 1025, 2049, 4096, 5000}) {
    for (const DType dtype : {DType::float32, DType::bfloat16}) {
      for (const std::int64_t s_q : {1, 2, 9}) {
        Call call = generated({.h_q = 4, .h_kv = 2, .s_q = s_q, .s_kv = keys, .d = 32, .d_v = 32})
                        .in(dtype);
        call.mask = "causal";
        const Answer serial = conformance::run(call, 1);
        checker.check(call);
        for (const int threads : {2, 3, 8}) {
          checker.same(call, conformance::run(call, threads), serial);
        }
      }
    }
  }
  return checker.outcome();
}

Outcome d27_scale(const Settings& settings) {
  Checker checker(settings);
  Call zero = counting({.s_q = 2, .s_kv = 300, .d = 16, .d_v = 2});
  zero.q = generated(zero.shape()).q;
  zero.scale = 0.0;
  const Answer mean = checker.check(zero);
  checker.close(zero, "o", mean.o, std::vector<double>(mean.o.size(), 149.5), 1e-5);
  checker.close(zero, "lse", mean.lse, std::vector<double>(mean.lse.size(), 5.70378247), 1e-5);
  Call causal = counting({.s_q = 64, .s_kv = 64, .d = 16, .d_v = 1});
  causal.q = generated(causal.shape()).q;
  causal.scale = 0.0, causal.mask = "causal";
  const Answer rows = checker.check(causal);
  for (std::size_t row = 0; row < rows.o.size(); ++row) {
    checker.close(causal, "o", rows.o[row], static_cast<double>(row) / 2.0, 1e-5);
  }
  for (const DType dtype : float_dtypes) {
    Call three = generated({.s_q = 1, .s_kv = 3, .d = 1, .d_v = 1});
    for (const double unit : {1.0, 0x1p-65}) {  // the scale is beyond float32
      if (unit != 1.0 && dtype == DType::float16) continue;
      three.q.data = {unit}, three.k.data = {0, unit, 2 * unit}, three.v.data = {10, 20, 30};
      three = three.in(dtype);
      for (const auto& [scale, o, lse] :
           {std::tuple{-2.0, 11.4906291, 0.142931628}, {2.0, 28.5093709, 4.14293163}}) {
        three.scale = scale / unit / unit;
        const Answer answer = checker.check(three);
        // The written values have nine digits.
        const double tolerance = std::max(closed_form_tolerance(dtype), 1e-8);
        checker.close(three, "o", answer.o[0], o, tolerance);
        checker.close(three, "lse", answer.lse[0], lse, std::max(tolerance, 1e-5));
      }
    }
    Call wide = generated({.s_q = 40, .s_kv = 50, .d = 192, .d_v = 128}).in(dtype);
    const Answer by_default = checker.check(wide);
    wide.scale = 1.0 / std::sqrt(192.0);
    checker.same(wide, checker.run(wide), by_default);
    for (const double scale : {-0.25, 0.0, 1e-30, 3.0}) {
      wide.scale = scale;
      for (const char* mask : {"causal", "window(5, -1)", "full"}) {
        wide.mask = mask;
        checker.check(backward_of(wide));
      }
    }
  }
  return checker.outcome();
}

}  // namespace onepass::conformance
