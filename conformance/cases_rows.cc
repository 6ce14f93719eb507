// Which keys a row sees: empty rows, late first tiles, alignment, windows, positions.
#include <cmath>
#include <limits>

#include "conformance/checker.h"
#include "conformance/every_case.h"
#include "conformance/generator.h"

namespace onepass::conformance {
namespace {

std::vector<double> dense(std::int64_t rows, std::int64_t cols, auto visible) {
  std::vector<double> values;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t col = 0; col < cols; ++col) values.push_back(visible(row, col));
  }
  return values;
}

// Row `row` of (1, s_q, h, d_v) for head h, channel 0.
double o_at(const Call& call, const Answer& answer, std::int64_t row, std::int64_t h = 0) {
  const Shape s = call.shape();
  return answer.o[static_cast<std::size_t>((row * s.h_q + h) * s.d_v)];
}

double lse_at(const Call& call, const Answer& answer, std::int64_t row, std::int64_t h = 0) {
  return answer.lse[static_cast<std::size_t>(h * call.shape().s_q + row)];
}

struct RowMean {
  std::int64_t row;
  double mean;
};

void check_means(Checker& checker, const Call& call, std::initializer_list<RowMean> means) {
  const Answer answer = checker.check(call);
  if (!answer.ran) return;
  for (const RowMean& wanted : means) {
    checker.close(call, "row " + std::to_string(wanted.row), o_at(call, answer, wanted.row),
                  wanted.mean, closed_form_tolerance(call.dtype));
  }
}

}  // namespace

Outcome d01_empty_rows(const Settings& settings) {
  Checker checker(settings);
  Call call = generated({.h_q = 2, .h_kv = 2, .s_q = 6, .s_kv = 10, .d = 8, .d_v = 8});
  call.scale = 0.125;
  call.arguments = {
      {"m", NamedArray{DType::boolean, {1, 1, 6, 10}, dense(6, 10, [](auto row, auto col) {
                         return row < 5 && col <= row;
                       })}}};
  for (const char* mask : {"dense(m)", "row < 5 & col <= row", "dense(m) & full"}) {
    for (const DType dtype : float_dtypes) {
      Call variant = call.in(dtype);
      variant.mask = mask;
      if (variant.mask.find('m') == std::string::npos) variant.arguments.clear();
      const BackwardCall backward = backward_of(variant);
      const Gradients gradients = checker.check(backward);
      const Answer& answer = gradients.forward;
      if (!gradients.ran) continue;
      for (std::int64_t h = 0; h < 2; ++h) {
        checker.expect(variant, lse_at(variant, answer, 5, h) == -infinity, "lse of row 5");
      }
      checker.same(variant, "o of row 5", std::span(answer.o).last(16), std::vector<double>(16));
      checker.same(backward, "dq of row 5", std::span(gradients.dq).last(16),
                   std::vector<double>(16));
      for (const auto& gradient : {gradients.dk, gradients.dv}) {
        checker.same(backward, "dk and dv of keys 5..9", std::span(gradient).last(5 * 16),
                     std::vector<double>(5 * 16));
      }
      if (dtype != DType::float32) continue;
      checker.probe(backward, "sum |dq|", sum_abs(gradients.dq), 1.17656917);
      checker.probe(backward, "sum |dk|", sum_abs(gradients.dk), 6.42201392);
      checker.probe(backward, "sum |dv|", sum_abs(gradients.dv), 24.4797769);
      checker.probe(variant, "o[4, h1, 0]", o_at(variant, answer, 4, 1), 0.473008912);
      checker.probe(variant, "lse[h1, 4]", lse_at(variant, answer, 4, 1), 2.14786498);
      checker.probe(variant, "sum |o|", sum_abs(answer.o), 24.8567087);
    }
  }
  // The kind: rows without keys before, between and after rows with keys, at any tile place.
  for (const char* mask : {"row % 3 == 1 & k <= q", "row >= 70 & k <= q", "row < 70", "false",
                           "row == 64", "k < 0", "row % 2 == 0 & k > q"}) {
    Call variant = generated({.s_q = 131, .s_kv = 131, .d = 16, .d_v = 16});
    variant.mask = mask;
    checker.check(backward_of(variant));
    checker.check(backward_of(variant.in(DType::bfloat16)));
  }
  return checker.outcome();
}

Outcome d02_late_first_key(const Settings& settings) {
  Checker checker(settings);
  for (const std::int64_t hidden : {128, 1, 63, 64, 65, 127, 129, 255, 256, 257, 512, 513}) {
    Call call = counting({.s_q = hidden == 128 ? 441 : 7, .s_kv = hidden + 313, .d = 64, .d_v = 2});
    call.k = filled(call.k.shape, 0.0);
    const double mean = static_cast<double>(hidden) + 156.0;
    for (const double low : {-infinity, -3.4028235e38}) {
      Call additive = call;
      additive.score = "bias(s, m)";
      additive.arguments = {{"m", NamedArray{DType::float32,
                                             {1, 1, 1, hidden + 313},
                                             dense(1, hidden + 313, [&](auto, auto col) {
                                               return col < hidden ? low : 0.0;
                                             })}}};
      const Answer answer = checker.run(additive);
      checker.close(additive, "o", answer.o, std::vector<double>(answer.o.size(), mean), 1e-5);
      checker.close(additive, "lse", answer.lse,
                    std::vector<double>(answer.lse.size(), std::log(313.0)), 1e-5);
    }
    for (const DType dtype : float_dtypes) {
      Call masked = call.in(dtype);
      masked.mask = "k >= n";
      masked.arguments = {{"n", hidden}};
      const Answer answer = checker.check(masked);
      checker.close(masked, "lse", answer.lse,
                    std::vector<double>(answer.lse.size(), std::log(313.0)), 1e-5);
    }
  }
  return checker.outcome();
}

Outcome d03_causal_unequal_lengths(const Settings& settings) {
  Checker checker(settings);
  Call tall = counting({.s_q = 8, .s_kv = 5, .d = 4, .d_v = 4}, 1.0);
  tall.mask = "causal";
  Call wide = counting({.s_q = 5, .s_kv = 6, .d = 4, .d_v = 4}, 1.0);
  wide.mask = "causal";
  for (const DType dtype : float_dtypes) {
    check_means(checker, tall.in(dtype),
                {{0, 0}, {1, 0}, {2, 0}, {3, 1}, {4, 1.5}, {5, 2}, {6, 2.5}, {7, 3}});
    check_means(checker, wide.in(dtype), {{0, 1.5}, {1, 2}, {2, 2.5}, {3, 3}, {4, 3.5}});
  }
  tall.top_left = wide.top_left = true;
  check_means(checker, tall, {{0, 1}, {1, 1.5}, {2, 2}, {3, 2.5}, {4, 3}, {5, 3}, {6, 3}, {7, 3}});
  check_means(checker, wide, {{0, 1}, {1, 1.5}, {2, 2}, {3, 2.5}, {4, 3}});

  Call large = counting({.s_q = 2048, .s_kv = 1024, .d = 64, .d_v = 4}, 1.0);
  large.mask = "causal";
  const Answer answer = checker.run(large);
  for (std::int64_t row = 0; row < 2048 && answer.ran; ++row) {
    const double keys = static_cast<double>(std::max<std::int64_t>(row - 1023, 0));
    checker.close(large, "o", o_at(large, answer, row), keys == 0 ? 0.0 : (keys + 1) / 2, 1e-5);
    checker.close(large, "lse", lse_at(large, answer, row), std::log(keys), 1e-5);
  }
  // The kind: every small pair of lengths, both alignments, and positions given.
  for (const std::int64_t s_q : {1, 2, 3, 63, 64, 65, 127, 200}) {
    for (const std::int64_t s_kv : {1, 2, 3, 63, 64, 65, 127, 200}) {
      Call call = generated({.s_q = s_q, .s_kv = s_kv, .d = 8, .d_v = 3});
      call.mask = "causal";
      checker.check(backward_of(call));
      call.top_left = true;
      checker.check(backward_of(call));
      call.q_start = {1000 - s_q};
      call.k_start = {1000 - s_kv};
      const Answer placed = checker.check(call);
      call.top_left = false;
      call.q_start.clear(), call.k_start.clear();
      checker.same(call, checker.run(call), placed);  // the same pairs seen from another origin
    }
  }
  return checker.outcome();
}

Outcome d08_window_ends(const Settings& settings) {
  Checker checker(settings);
  const Call base = counting({.s_q = 64, .s_kv = 64, .d = 8, .d_v = 8});
  for (const DType dtype : float_dtypes) {
    const auto means = [&](const std::string& mask, std::initializer_list<RowMean> wanted) {
      Call call = base.in(dtype);
      call.mask = mask;
      check_means(checker, call, wanted);
    };
    for (const char* mask : {"window(7, 0)", "causal & window(7, -1)", "q - 7 <= k <= q"}) {
      means(mask, {{3, 1.5}, {10, 6.5}, {20, 16.5}, {63, 59.5}});
      Call call = base.in(dtype);
      call.mask = mask;
      const Answer answer = checker.run(call);
      if (answer.ran) {
        checker.close(call, "lse of row 20", lse_at(call, answer, 20), std::log(8.0), 1e-5);
      }
    }
    means("window(2, 3)", {{0, 1.5}, {10, 10.5}, {63, 62}});
    means("window(-1, 2)", {{0, 1}, {10, 6}});
    means("window(5, -1)", {{0, 31.5}, {10, 34}, {63, 60.5}});
    Call self = base.in(dtype);
    self.mask = "window(0, 0)";
    const Answer own = checker.run(self);
    checker.same(self, "o", own.o, self.v.data);
    Call causal = base.in(dtype);
    causal.mask = "causal";
    const Answer plain = checker.run(causal);
    if (plain.ran) {
      checker.close(causal, "row 63", o_at(causal, plain, 63), 31.5, closed_form_tolerance(dtype));
      checker.close(causal, "lse", lse_at(causal, plain, 63), std::log(64.0), 1e-5);
    }
    for (const char* mask : {"window(-1, 0)", "window(64, 0)", "window(63, 0)"}) {
      causal.mask = mask;
      checker.same(causal, checker.run(causal), plain);
    }
  }
  // The kind: both ends round tile edges, lengths unequal.
  for (const std::int64_t left : {-1, 0, 1, 5, 63, 64, 65}) {
    for (const std::int64_t right : {-1, 0, 1, 6, 64}) {
      Call call = counting({.s_q = 150, .s_kv = 201, .d = 8, .d_v = 2});
      call.mask = "window(l, r)";
      call.arguments = {{"l", left}, {"r", right}};
      checker.check(backward_of(call));
    }
  }
  return checker.outcome();
}

Outcome d09_alibi_one_token(const Settings& settings) {
  Checker checker(settings);
  const double means[] = {32.4827448, 24.5608859, 19.7713987, 18.4451574};
  const double sums[] = {1.50859543, 2.69941106, 3.34354535, 3.54147501};
  const std::vector<double> slopes = {1 / 4., 1 / 16., 1 / 64., 1 / 256.};
  const auto with_slopes = [&](Call call, bool per_sequence) {
    call.score = "alibi(s, slopes)";
    const std::vector<std::int64_t> shape =
        per_sequence ? std::vector<std::int64_t>{1, 4} : std::vector<std::int64_t>{4};
    call.arguments.push_back({"slopes", NamedArray{DType::float32, shape, slopes}});
    return call;
  };
  Call whole = counting({.h_q = 4, .h_kv = 4, .s_q = 37, .s_kv = 37, .d = 8, .d_v = 2});
  Call token = counting({.h_q = 4, .h_kv = 4, .s_q = 1, .s_kv = 37, .d = 8, .d_v = 2});
  Call cache = counting({.h_q = 4, .h_kv = 4, .s_q = 1, .s_kv = 64, .d = 8, .d_v = 2});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto tail = static_cast<std::ptrdiff_t>(37 * 4);
  std::fill(cache.k.data.begin() + tail * 8, cache.k.data.end(), nan);
  std::fill(cache.v.data.begin() + tail * 2, cache.v.data.end(), nan);
  cache.mask = "lengths(n)";
  cache.arguments = {{"n", NamedArray{DType::int32, {1}, {37}}}};
  cache.q_start = {36};
  Call used = cache;  // the same, its length said another way
  used.mask = "full", used.arguments.clear(), used.q_start.clear();
  used.seqused_k = {37};
  // 37 tokens behind another sequence of 5.
  Call packed = counting({.h_q = 4, .h_kv = 4, .s_q = 42, .s_kv = 42, .d = 8, .d_v = 2}, -5.0);
  packed.cu_seqlens_q = packed.cu_seqlens_k = {0, 5, 42};
  for (const Call& base : {whole, token, cache, used, packed}) {
    for (const DType dtype : {DType::float32, DType::float64}) {
      for (const bool per_sequence : {false, true}) {
        const Call call = with_slopes(base, per_sequence).in(dtype);
        BackwardCall backward = backward_of(call);
        backward.dargs = {"slopes"};
        const Answer answer = checker.check(backward).forward;
        for (std::int64_t h = 0; h < 4 && answer.ran; ++h) {
          const std::int64_t last = call.shape().s_q - 1;
          const auto head = static_cast<std::size_t>(h);
          checker.close(call, "o", o_at(call, answer, last, h), means[head], 1e-5);
          checker.close(call, "lse", lse_at(call, answer, last, h), sums[head], 1e-5);
        }
      }
    }
  }
  return checker.outcome();
}

}  // namespace onepass::conformance
