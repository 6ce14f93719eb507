// Key/value caches: pages, appends, sequences that do not touch each other.
#include <cmath>
#include <limits>

#include "conformance/checker.h"
#include "conformance/every_case.h"
#include "onepass/kv_cache.h"

namespace onepass::conformance {
namespace {

CacheCall cached(const Call& call, std::vector<std::int64_t> lengths, std::int64_t page_size = 0) {
  CacheCall out;
  out.call = call;
  out.lengths = std::move(lengths);
  out.page_size = page_size;
  return out;
}

// Adds `count` new keys and values to every sequence.
void append(CacheCall& cache, std::int64_t count) {
  const Shape s = cache.call.shape();
  const Call fresh =
      generated({.b = s.b, .h_kv = s.h_kv, .s_kv = count + 1, .d = s.d, .d_v = s.d_v});
  const auto rows = [&](const reference::Tensor& tensor) {
    reference::Tensor cut = filled({s.b, count, s.h_kv, tensor.shape[3]}, 0.0);
    for (std::size_t i = 0; i < cut.data.size(); ++i) {
      cut.data[i] = rounded(cache.call.dtype, tensor.data[tensor.data.size() - 1 - i]);
    }
    return cut;
  };
  cache.k_new = rows(fresh.k), cache.v_new = rows(fresh.v);
}

// Row b of (b, s, h, d) values.
std::span<const double> sequence(const Call& call, std::span<const double> values, std::int64_t b) {
  const std::size_t each = values.size() / static_cast<std::size_t>(call.q.shape[0]);
  return values.subspan(static_cast<std::size_t>(b) * each, each);
}

}  // namespace

Outcome d09_alibi_in_a_cache(const Settings& settings) {
  Checker checker(settings);
  const double means[] = {32.4827448, 24.5608859, 19.7713987, 18.4451574};
  const double sums[] = {1.50859543, 2.69941106, 3.34354535, 3.54147501};
  for (const DType dtype : {DType::float32, DType::float64}) {
    for (const std::int64_t page_size : {0, 16}) {
      Call call = counting({.h_q = 4, .h_kv = 4, .s_q = 1, .s_kv = 64, .d = 8, .d_v = 2});
      call.score = "alibi(s, slopes)";
      call.arguments = {
          {"slopes", NamedArray{DType::float32, {4}, {1 / 4., 1 / 16., 1 / 64., 1 / 256.}}}};
      const CacheCall cache = cached(call.in(dtype), {37}, page_size);
      const Answer answer = checker.check(cache).answer;
      for (std::size_t h = 0; h < 4 && answer.ran; ++h) {
        checker.close(cache, "o", answer.o[2 * h], means[h], 1e-5);
        checker.close(cache, "lse", answer.lse[h], sums[h], 1e-5);
      }
    }
  }
  return checker.outcome();
}

Outcome d19_pages(const Settings& settings) {
  Checker checker(settings);
  for (const DType dtype : float_dtypes) {
    Call one = generated({.b = 2, .h_q = 32, .h_kv = 8, .s_q = 1, .s_kv = 2, .d = 64, .d_v = 64});
    for (reference::Tensor Call::*tensor : {&Call::q, &Call::k, &Call::v}) {
      std::vector<double>& data = (one.*tensor).data;
      std::copy_n(data.begin(), data.size() / 2, data.begin() + std::ssize(data) / 2);
    }
    const CacheCall twins = cached(one.in(dtype), {1, 1}, 2);
    const Answer answer = checker.check(twins).answer;
    if (answer.ran) {
      checker.same(twins, "o of the second sequence", sequence(one, answer.o, 1),
                   sequence(one, answer.o, 0));
      std::vector<double> want;
      for (std::int64_t h = 0; h < 32; ++h) {
        const auto head = twins.call.v.data.begin() + h / 4 * 64;
        want.insert(want.end(), head, head + 64);
      }
      checker.close(twins, "o", sequence(one, answer.o, 0), want, closed_form_tolerance(dtype));
    }
    for (const std::int64_t page_size : {16, 1, 7, 256, 0}) {
      if (page_size != 16 && dtype != DType::float32) continue;
      for (const char* mask : {"full", "causal"}) {
        Call lengths =
            counting({.b = 8, .h_q = 8, .h_kv = 8, .s_q = 1, .s_kv = 300, .d = 128, .d_v = 4})
                .in(dtype);
        lengths.mask = mask;
        const std::vector<std::int64_t> used = {1, 15, 16, 17, 255, 256, 257, 300};
        const CacheCall cache = cached(lengths, used, page_size);
        const Answer mean = checker.check(cache).answer;
        for (std::size_t b = 0; b < 8 && mean.ran; ++b) {
          const auto last = static_cast<double>(used[b] - 1);
          // Indices above 256 are not exact in bfloat16.
          if (dtype != DType::bfloat16) {
            checker.close(cache, "o", mean.o[b * 32], last / 2.0, closed_form_tolerance(dtype));
          }
          checker.close(cache, "lse", mean.lse[b * 8], std::log(last + 1.0), 1e-5);
        }
      }
    }
  }
  return checker.outcome();
}

Outcome d25_append(const Settings& settings) {
  Checker checker(settings);
  for (const DType dtype : float_dtypes) {
    Call call = generated({.b = 2, .h_q = 4, .h_kv = 2, .s_q = 1, .s_kv = 16, .d = 32, .d_v = 32});
    for (const std::int64_t page_size : {0, 8}) {
      CacheCall full = cached(call.in(dtype), {3, 16}, page_size);
      append(full, 1);
      const CacheAnswer refused = conformance::run(full, settings.threads);
      checker.expect(full, !refused.answer.ran, "an append beyond the capacity was accepted");
      checker.expect(full, refused.answer.outputs_kept, "o or lse was written");
      full.k_new.shape[1] = full.v_new.shape[1] = 0;  // now no slot may have changed
      checker.expect(full, refused.rest_kept, "the cache was written");
      checker.expect(full, std::isnan(refused.k[3 * 64]), "the first sequence was appended to");
    }
    call = generated({.h_q = 4, .h_kv = 2, .s_q = 1, .s_kv = 1025, .d = 32, .d_v = 32});
    CacheCall long_cache = cached(call.in(dtype), {1024});
    append(long_cache, 1);
    checker.check(long_cache);
    for (const std::int64_t count : {1, 3}) {
      for (const std::int64_t page_size : {16, 5, 0}) {
        for (const std::int64_t s_q : {count, std::int64_t{1}, std::int64_t{7}}) {
          call =
              generated({.b = 4, .h_q = 4, .h_kv = 2, .s_q = s_q, .s_kv = 40, .d = 32, .d_v = 16});
          call.mask = "causal";
          CacheCall cache = cached(call.in(dtype), {15, 16, 17, 0}, page_size);
          append(cache, count);
          if (page_size == 0) cache.batch_idx = {5, 0, 3, 2};
          checker.check(cache);
          cache.lengths[3] = 6;  // no query before position 0: it has no angle
          cache.rotary_pairs = page_size == 5 ? 7 : 16;
          for (const bool interleaved : {false, true}) {
            cache.interleaved = interleaved;
            checker.check(cache);
          }
          cache.cache_layout = Layout::head_major;
          checker.check(cache);
        }
      }
    }
  }
  return checker.outcome();
}

Outcome d29_neighbours(const Settings& settings) {
  Checker checker(settings);
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    for (const std::int64_t page_size : {0, 16}) {
      if (page_size == 0 && dtype != DType::float32) continue;
      const Call call =
          generated({.b = 4, .h_q = 32, .h_kv = 8, .s_q = 1, .s_kv = 1024, .d = 128, .d_v = 128})
              .in(dtype);
      const CacheCall first = cached(call, {900, 1000, 120, 500}, page_size);
      CacheCall second = first;
      second.lengths[0] = 800;
      const Answer a = checker.run(first).answer, b = checker.check(second).answer;
      if (!a.ran || !b.ran) continue;
      for (std::int64_t i = 1; i < 4; ++i) {
        checker.same(second, "o beside another first length", sequence(call, b.o, i),
                     sequence(call, a.o, i));
      }
      for (std::int64_t i = 0; i < 4; ++i) {
        CacheCall alone = first;
        for (reference::Tensor* tensor : {&alone.call.q, &alone.call.k, &alone.call.v}) {
          const auto each = std::ssize(tensor->data) / 4;
          tensor->shape[0] = 1;
          tensor->data.assign(tensor->data.begin() + i * each,
                              tensor->data.begin() + (i + 1) * each);
        }
        alone.lengths = {first.lengths[static_cast<std::size_t>(i)]};
        checker.same(alone, "o of a sequence alone", checker.run(alone).answer.o,
                     sequence(call, a.o, i));
      }
    }
  }
  return checker.outcome();
}

Outcome d30_cache_refusals(const Settings& settings) {
  Checker checker(settings);
  const Call call = generated({.b = 2, .h_q = 2, .h_kv = 1, .s_q = 1, .s_kv = 4, .d = 8, .d_v = 8});
  checker.check(call);
  const Storage k(DType::float32, std::array<std::int64_t, 4>{6, 2, 1, 8}),
      v(DType::float32, std::array<std::int64_t, 4>{6, 2, 1, 8});
  const Storage q(DType::float32, call.q.shape), o(DType::float32, call.q.shape);
  const Storage k_new(DType::float32, std::array<std::int64_t, 4>{2, 1, 1, 8});
  static const std::int32_t pages[] = {0, 1, 2, 3}, beyond[] = {0, 1, 2, 6},
                            below[] = {-1, 1, 2, 3};
  static const std::int32_t shared[] = {0, 1, 0, 3};
  static const std::int32_t lengths[] = {1, 3}, too_long[] = {1, 5}, negative[] = {1, -1};
  static const std::int32_t ones[] = {1, 1};
  struct Row {
    const char* what;
    const std::int32_t *pages, *lengths;
    bool appends;
  };
  for (const Row& row : {Row{"a page beyond the last", beyond, lengths, false},
                         {"a page below 0", below, lengths, false},
                         {"a length beyond the pages", pages, too_long, false},
                         {"a negative length", pages, negative, false},
                         {"two sequences that append to one slot", shared, ones, true}}) {
    KvCache cache{.k = k.view(), .v = v.view()};
    cache.seqlens = TensorView(row.lengths, DType::int32, {2});
    cache.block_table = TensorView(row.pages, DType::int32, {2, 2});
    if (row.appends) cache.k_new = cache.v_new = k_new.view();
    bool refused = false;
    try {
      attention_kvcache(q.view(), cache, o.view());
    } catch (const Error&) {
      refused = true;
    }
    checker.expect(call, refused, std::string(row.what) + " was accepted");
    checker.expect(call, o.untouched() && k.untouched() && v.untouched(),
                   std::string(row.what) + ": something was written");
  }
  return checker.outcome();
}

}  // namespace onepass::conformance
