// NaN and infinity: what is hidden never touches the result, what is visible reaches it.
#include <cmath>
#include <limits>

#include "conformance/checker.h"
#include "conformance/every_case.h"
#include "conformance/generator.h"

namespace onepass::conformance {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// Writes `value` into key `key` of sequence b, every head and channel.
void poison(reference::Tensor& tensor, std::int64_t b, std::int64_t key, double value) {
  const std::int64_t row = tensor.shape[2] * tensor.shape[3];
  const auto begin = tensor.data.begin() + (b * tensor.shape[1] + key) * row;
  std::fill(begin, begin + row, value);
}

bool all_finite(std::span<const double> values) {
  for (const double value : values) {
    if (!std::isfinite(value)) return false;
  }
  return true;
}

}  // namespace

Outcome d04_cache_tail(const Settings& settings) {
  Checker checker(settings);
  struct Cache {
    std::int64_t capacity, lengths[2];
  };
  for (const Cache& cache : {Cache{3, {1, 3}}, {64, {1, 63}}, {200, {65, 130}}, {257, {0, 256}}}) {
    for (const std::int64_t s_q : {1, 3, 70}) {
      for (const DType dtype : float_dtypes) {
        for (const bool causal : {false, true}) {
          Call clean = generated({.b = 2, .s_q = s_q, .s_kv = cache.capacity, .d = 64, .d_v = 64});
          clean.q = filled(clean.q.shape, 0.5);
          clean.k = filled(clean.k.shape, 0.5);
          clean.v = filled(clean.v.shape, 0.0);
          for (std::int64_t b = 0; b < 2; ++b) {
            for (std::int64_t key = 0; key < cache.lengths[b]; ++key) {
              poison(clean.v, b, key, b == 0 ? 2.0 : 5.0);
            }
            for (std::int64_t key = cache.lengths[b]; key < cache.capacity; ++key) {
              poison(clean.k, b, key, 0.0);
            }
            clean.q_start.push_back(cache.lengths[b] - s_q);
          }
          clean = clean.in(dtype);
          clean.mask = causal ? "lengths(n) & causal" : "lengths(n)";
          clean.arguments = {{"n", NamedArray{DType::int32,
                                              {2},
                                              {static_cast<double>(cache.lengths[0]),
                                               static_cast<double>(cache.lengths[1])}}}};
          const Answer zero_tail = checker.check(clean);
          if (!zero_tail.ran) continue;
          if (!causal) {
            for (std::size_t i = 0; i < zero_tail.o.size(); ++i) {
              const bool second = i >= zero_tail.o.size() / 2;
              const double want = cache.lengths[second] == 0 ? 0.0 : second ? 5.0 : 2.0;
              checker.close(clean, "o", zero_tail.o[i], want, closed_form_tolerance(dtype));
            }
          }
          for (const double unused : {nan, infinity, -infinity}) {
            Call dirty = clean;
            for (std::int64_t b = 0; b < 2; ++b) {
              for (std::int64_t key = cache.lengths[b]; key < cache.capacity; ++key) {
                poison(dirty.k, b, key, unused);
                poison(dirty.v, b, key, unused);
              }
            }
            const Answer answer = checker.run(dirty);
            checker.expect(dirty, all_finite(answer.o), "o is not finite");
            checker.same(dirty, answer, zero_tail);
            if (s_q == 1 || unused < 0.0) continue;
            const Gradients gradients = checker.check(backward_of(dirty));
            for (const auto& gradient : {gradients.dq, gradients.dk, gradients.dv}) {
              checker.expect(dirty, all_finite(gradient), "a gradient is not finite");
            }
          }
        }
      }
    }
  }
  return checker.outcome();
}

Outcome d05_hidden_and_visible_nan(const Settings& settings) {
  Checker checker(settings);
  for (const DType dtype : float_dtypes) {
    Call two = generated({.s_q = 2, .s_kv = 2, .d = 4, .d_v = 4});
    for (std::size_t i = 0; i < 8; ++i) two.q.data[i] = static_cast<double>(i);
    two.k.data = two.v.data = two.q.data;
    two = two.in(dtype);
    two.mask = "k == 0";
    const std::vector<double> want = {0, 1, 2, 3, 0, 1, 2, 3};
    checker.same(two, "o", checker.run(two).o, want);
    poison(two.k, 0, 1, nan);
    poison(two.v, 0, 1, nan);
    checker.same(two, "o", checker.run(two).o, want);

    Call causal = generated({.s_q = 8, .s_kv = 8, .d = 16, .d_v = 16}).in(dtype);
    causal.mask = "causal";
    const Answer clean = checker.run(causal);
    poison(causal.k, 0, 5, nan);
    const Answer dirty = checker.check(causal);
    if (!clean.ran || !dirty.ran) continue;
    const std::size_t hidden = 5 * 16;
    checker.same(causal, "rows 0..4", std::span(dirty.o).first(hidden),
                 std::span(clean.o).first(hidden));
    for (const double o : std::span(dirty.o).subspan(hidden)) {
      checker.expect(causal, std::isnan(o), "a visible NaN was lost");
    }
  }
  // The kind: NaN in K, V or both, one key or many, under masks that hide it from some rows of a
  // tile, at every place of a tile.
  for (const char* mask : {"causal", "window(20, 3)", "(row + col) % 3 != 0", "chunked(48)",
                           "k % 7 != 3 | row == 5", "k != 100"}) {
    for (const std::int64_t key : {0, 31, 64, 100, 149}) {
      for (const int where : {1, 2, 3}) {
        for (const DType dtype : {DType::float32, DType::bfloat16}) {
          Call call = generated({.h_q = 2, .s_q = 150, .s_kv = 150, .d = 16, .d_v = 8}).in(dtype);
          call.mask = mask;
          const Answer clean = checker.run(call);
          if (where & 1) poison(call.k, 0, key, nan);
          if (where & 2) poison(call.v, 0, key, nan);
          const Answer dirty = checker.run(call);
          if (dtype == DType::float32 && where == 3) checker.check(backward_of(call));
          if (!clean.ran || !dirty.ran) continue;
          const reference::Attention reference = reference_of(call);
          const reference::Expression visible(mask, reference::Kind::mask, {});
          for (std::int64_t row = 0; row < 150; ++row) {
            const bool seen = visible.visible(reference.pair(0, 0, row, key));
            const auto place = static_cast<std::size_t>(row * 16);
            const auto got = std::span(dirty.o).subspan(place, 16);
            if (!seen) checker.same(call, "o", got, std::span(clean.o).subspan(place, 16));
            if (seen) checker.expect(call, std::isnan(got[0]), "a visible NaN was lost");
          }
        }
      }
    }
  }
  // NaN in one query row stays in that row.
  Call query = generated({.s_q = 70, .s_kv = 90, .d = 16, .d_v = 8});
  query.mask = "causal";
  poison(query.q, 0, 33, nan);
  checker.check(backward_of(query));
  return checker.outcome();
}

Outcome d06_very_negative_logits(const Settings& settings) {
  Checker checker(settings);
  for (const double sign : {1.0, -1.0}) {
    for (const DType dtype : float_dtypes) {
      // The three keys alone, then the same three among whole tiles of keys.
      for (const std::int64_t repeats : {1, 50, 100}) {
        Call call = generated({.s_q = 1, .s_kv = 3 * repeats, .d = 64, .d_v = 8});
        call.q = filled(call.q.shape, 0.0), call.k = filled(call.k.shape, 0.0);
        call.q.data[0] = 512.0;
        const double values[] = {1.0, 2.0, 6.0};
        for (std::int64_t key = 0; key < 3 * repeats; ++key) {
          call.k.data[static_cast<std::size_t>(key * 64)] = -512.0 * sign;
          poison(call.v, 0, key, values[key % 3]);
        }
        call = call.in(dtype);
        call.scale = 0.125;
        const Answer answer = checker.check(call);
        if (!answer.ran) continue;
        const double keys = static_cast<double>(3 * repeats);
        checker.close(call, "o", answer.o, std::vector<double>(8, 3.0),
                      closed_form_tolerance(dtype));
        // Two units in the last place of float32 at 32768.
        checker.expect(call, std::fabs(answer.lse[0] - (-32768.0 * sign + std::log(keys))) <= 0.008,
                       "lse");
      }
    }
  }
  return checker.outcome();
}

Outcome d07_softcap_partial_tile(const Settings& settings) {
  Checker checker(settings);
  for (std::int64_t keys = 1; keys <= 260; ++keys) {
    for (const DType dtype : float_dtypes) {
      for (const char* score : {"softcap(s, 1)", "s * 0.0 + 0.0", "exp(-abs(s)) - 1"}) {
        Call call = counting({.s_kv = keys, .d = 16, .d_v = 3}).in(dtype);
        call.v = filled(call.v.shape, 1.0);
        call.score = score;
        const Answer answer = checker.run(call);
        if (!answer.ran) continue;
        checker.close(call, "o", answer.o, std::vector<double>(3, 1.0),
                      closed_form_tolerance(dtype));
        checker.close(call, "lse", answer.lse[0], std::log(static_cast<double>(keys)), 1e-5);
      }
    }
  }
  return checker.outcome();
}

}  // namespace onepass::conformance
