// Caches of keys and values: contiguous and paged, appended to in place, with and without rotary.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "by_dtype.h"
#include "cache_case.h"

namespace onepass::cpu_test {
namespace {

// Of bfloat16: outputs below 1 and rotated queries rounded to 8 bits.
constexpr ByDType tolerance{.float64 = 1e-13, .float32 = 1e-5, .bfloat16 = 6e-3, .float16 = 1e-3};

double lse_tolerance(const CacheCase& c) {
  if (c.dtype == DType::float64) return 1e-13;
  // Rotated queries may be rounded the other way.
  if (c.rotary_pairs > 0 && c.dtype != DType::float32) return 1e-2;
  return c.dtype == DType::bfloat16 ? 1.5e-4 : 1e-5;
}

std::string describe(const CacheCase& c) {
  return std::string(name(c.dtype)) + " page " + std::to_string(c.page_size) + " new " +
         std::to_string(c.s_new) + " s_q " + std::to_string(c.s_q) + " rotary " +
         std::to_string(c.rotary_pairs) + (c.interleaved ? "i " : " ") + c.mask;
}

void expect_right(const CacheCase& c) {
  CacheCall call(c);
  for (const std::string& isa : isas_for(c.dtype)) {
    const ForcedIsa forced(isa.c_str());
    call.run(1);
    const CacheCall::Error error = call.error();
    const std::string where = describe(c) + " " + isa;
    EXPECT_LE(error.o, tolerance(c.dtype)) << where;
    EXPECT_LE(error.lse, lse_tolerance(c)) << where;
    EXPECT_EQ(call.touched_slots(), 0) << where;
    EXPECT_LE(call.append_error(), c.rotary_pairs > 0 ? 1.0 : 0.0) << where;
    const auto o = call.o.bytes(), lse = call.lse.bytes(), k = call.k.bytes();
    call.run(2);
    EXPECT_EQ(call.o.bytes(), o) << where << ": 2 threads";
    EXPECT_EQ(call.lse.bytes(), lse) << where << ": 2 threads";
    EXPECT_EQ(call.k.bytes(), k) << where << ": 2 threads";
  }
}

TEST(KvCache, EveryDtypePageSizeAndAppend) {
  for (const DType dtype : {DType::float64, DType::float32, DType::bfloat16, DType::float16}) {
    for (const std::int64_t page : {0, 1, 2, 16, 17}) {
      for (const std::int64_t s_new : {0, 1, 3}) {
        CacheCase c{.lens = {5, 0, 34, 65}, .s_new = s_new, .page_size = page, .dtype = dtype};
        c.capacity = page == 17 ? 85 : 80;
        expect_right(c);
      }
    }
  }
}

// Long enough that keys are read where they lie.
TEST(KvCache, LongCaches) {
  for (const DType dtype : {DType::float64, DType::float32, DType::bfloat16, DType::float16}) {
    for (const std::int64_t page : {0, 1, 16, 17}) {
      if (dtype != DType::bfloat16 && page != 16) continue;
      CacheCase c{.lens = {600, 511, 1030, 3, 0}, .s_new = 2, .s_q = 2, .page_size = page};
      c.capacity = 1088, c.dtype = dtype, c.mask = "causal";
      expect_right(c);
      c.mask = "window(700, 0) & (h + k) % 3 != 1", c.score = "s - 0.01 * (q - k)", c.d_v = 20;
      c.rotary_pairs = 8;
      expect_right(c);
    }
  }
}

TEST(KvCache, ManyQueriesAndMasks) {
  for (const char* mask : {"causal", "window(9, 0)", "(b + h) % 2 == 0 | k + 3 <= q", "col > 2"}) {
    for (const std::int64_t page : {0, 16}) {
      for (const std::int64_t s_q : {1, 2, 7, 40}) {
        CacheCase c{.lens = {50, 44, 130}, .s_new = s_q, .s_q = s_q, .page_size = page};
        c.capacity = 192, c.mask = mask, c.score = "s - 0.01 * (q - k)";
        expect_right(c);
      }
    }
  }
}

TEST(KvCache, Rotary) {
  for (const DType dtype : {DType::float64, DType::float32, DType::bfloat16, DType::float16}) {
    for (const std::int64_t pairs : {1, 4, 8}) {
      for (const bool interleaved : {false, true}) {
        CacheCase c{.lens = {5, 17}, .s_new = 3, .s_q = 3, .page_size = 16, .dtype = dtype};
        c.rotary_pairs = pairs, c.interleaved = interleaved, c.mask = "causal";
        expect_right(c);
        c.page_size = 0, c.s_q = 1;
        expect_right(c);
      }
    }
  }
}

// One call over the joined keys, and the same keys appended to a cache.
TEST(KvCache, PagesGiveTheBitsOfContiguousKeys) {
  for (const std::int64_t s_q : {1, 30}) {
    CacheCase c{.lens = {15, 16, 17, 60}, .s_new = 30, .s_q = s_q, .page_size = 16};
    c.capacity = 96, c.mask = "causal";
    CacheCall paged(c);
    paged.run();
    c.page_size = 0;
    CacheCall joined(c);
    for (std::int64_t b = 0; b < 4; ++b) {
      for (std::int64_t key = 0; key < c.lens[static_cast<std::size_t>(b)]; ++key) {
        for (std::int64_t e = 0; e < c.h_kv * c.d; ++e) {
          const std::int64_t to = joined.slot(b, key) * c.h_kv * c.d + e;
          const std::int64_t from = paged.slot(b, key) * c.h_kv * c.d + e;
          joined.k.set(to, paged.k.get(from)), joined.v.set(to, paged.v.get(from));
        }
      }
    }
    for (Buffer* buffer : {&joined.q, &joined.k_new, &joined.v_new}) {
      const Buffer& from = buffer == &joined.q       ? paged.q
                           : buffer == &joined.k_new ? paged.k_new
                                                     : paged.v_new;
      for (std::size_t i = 0; i < buffer->bytes().size() / 4; ++i) {
        buffer->set(static_cast<std::int64_t>(i), from.get(static_cast<std::int64_t>(i)));
      }
    }
    attention_kvcache(joined.q_view, joined.cache, joined.o_view, joined.options);
    EXPECT_EQ(joined.o.bytes(), paged.o.bytes()) << s_q;
    EXPECT_EQ(joined.lse.bytes(), paged.lse.bytes()) << s_q;
  }
}

// One token of 37 in a cache of 64, by closed form: the position counts from the length.
TEST(KvCache, AlibiDecodeCountsFromTheLength) {
  for (const std::int64_t page : {0, 16}) {
    CacheCase c{.lens = {37}, .page_size = page, .h_q = 4, .h_kv = 4};
    c.score =
        "s - abs(q - k) * where(h == 0, 0.25, where(h == 1, 0.0625, where(h == 2, 0.015625,"
        " 0.00390625)))";
    CacheCall call(c);
    for (std::size_t i = 0; i < call.q.bytes().size() / 4; ++i) {
      call.q.set(static_cast<std::int64_t>(i), 0.0);
    }
    for (std::int64_t key = 0; key < 37; ++key) {
      for (std::int64_t e = 0; e < c.h_kv * c.d_v; ++e) {
        call.v.set(call.slot(0, key) * c.h_kv * c.d_v + e, static_cast<double>(key));
      }
    }
    attention_kvcache(call.q_view, call.cache, call.o_view, call.options);
    const double o[] = {32.4827448, 24.5608859, 19.7713987, 18.4451574};
    const double lse[] = {1.50859543, 2.69941106, 3.34354535, 3.54147501};
    for (std::int64_t h = 0; h < 4; ++h) {
      EXPECT_NEAR(call.o.get(h * c.d_v), o[h], 1e-4);
      EXPECT_NEAR(call.lse.get(h), lse[h], 1e-5);
    }
  }
}

TEST(KvCache, LengthsAroundThePages) {
  CacheCase c{.lens = {1, 15, 16, 17, 255, 256, 257, 300}, .page_size = 16, .capacity = 304};
  c.h_q = c.h_kv = 8, c.d = c.d_v = 128;
  CacheCall call(c);
  for (std::size_t i = 0; i < call.q.bytes().size() / 4; ++i) {
    call.q.set(static_cast<std::int64_t>(i), 0.0);
  }
  for (std::int64_t b = 0; b < 8; ++b) {
    for (std::int64_t key = 0; key < c.lens[static_cast<std::size_t>(b)]; ++key) {
      for (std::int64_t e = 0; e < c.h_kv * c.d_v; ++e) {
        call.v.set(call.slot(b, key) * c.h_kv * c.d_v + e, static_cast<double>(key));
      }
    }
  }
  attention_kvcache(call.q_view, call.cache, call.o_view, call.options);
  for (std::int64_t b = 0; b < 8; ++b) {
    const auto len = static_cast<double>(c.lens[static_cast<std::size_t>(b)]);
    for (std::int64_t h = 0; h < 8; ++h) {
      EXPECT_NEAR(call.o.get((b * 8 + h) * c.d_v + 5), (len - 1) / 2, 1e-3);
      EXPECT_NEAR(call.lse.get(b * 8 + h), std::log(len), 1e-5);
    }
  }
}

// Changing one length changes no bit of the other rows, nor does leaving them out.
TEST(KvCache, ASequenceDoesNotDependOnItsNeighbours) {
  CacheCase c{.lens = {900, 1000, 120, 500}, .capacity = 1024};
  c.h_q = 32, c.h_kv = 8, c.d = c.d_v = 64;
  CacheCall call(c);
  call.run(2);
  const auto all = call.o.bytes(), all_lse = call.lse.bytes();
  call.seqlens[0] = 800;
  call.run(1);
  const auto row = static_cast<std::ptrdiff_t>(c.h_q * c.d_v * 4);
  EXPECT_TRUE(std::equal(all.begin() + row, all.end(), call.o.bytes().begin() + row));
  EXPECT_TRUE(
      std::equal(all_lse.begin() + c.h_q * 4, all_lse.end(), call.lse.bytes().begin() + c.h_q * 4));
  KvCache one = call.cache;
  const std::int32_t len = 120, place = call.table[2];
  one.seqlens = TensorView(&len, DType::int32, {1});
  one.batch_idx = TensorView(&place, DType::int32, {1});
  const auto* q = static_cast<const std::byte*>(call.q.data()) + 2 * c.h_q * c.d * 4;
  std::vector<float> o(static_cast<std::size_t>(c.h_q * c.d_v));
  attention_kvcache(TensorView(q, c.dtype, {1, 1, c.h_q, c.d}), one,
                    TensorView(o.data(), {1, 1, c.h_q, c.d_v}));
  EXPECT_EQ(std::memcmp(o.data(), all.data() + 2 * row, static_cast<std::size_t>(row)), 0);
}

// Two identical sequences of one key, each in a partly filled page: both are that key's value.
TEST(KvCache, OneKeyIsItsValue) {
  CacheCase c{.lens = {1, 1}, .page_size = 2, .capacity = 2, .h_q = 32, .h_kv = 8};
  c.d = c.d_v = 64;
  CacheCall call(c);
  call.run();
  for (std::int64_t b = 0; b < 2; ++b) {
    for (std::int64_t i = 0; i < c.h_q * c.d_v; ++i) {
      const std::int64_t h_kv = i / c.d_v / 4;
      EXPECT_EQ(call.o.get(b * c.h_q * c.d_v + i),
                call.v.get((call.slot(b, 0) * c.h_kv + h_kv) * c.d_v + i % c.d_v));
    }
  }
}

// A cache that becomes full with the last token, and appends that begin, fill and cross pages.
TEST(KvCache, AppendsAtTheEdges) {
  CacheCase full{.lens = {1024}, .s_new = 1, .capacity = 1025};
  expect_right(full);
  for (const std::int64_t s_new : {1, 3}) {
    CacheCase pages{.lens = {15, 16, 17, 61}, .s_new = s_new, .page_size = 16};
    expect_right(pages);
  }
  CacheCase empty{.lens = {0, 0}, .s_new = 0, .page_size = 16};
  expect_right(empty);
}

// (b, h, s, d) memory seen as (b, s, h, d): the same bits as any other.
TEST(KvCache, HeadMajorPages) {
  CacheCase c{.lens = {15, 600}, .s_new = 3, .s_q = 3, .page_size = 16, .capacity = 640};
  c.mask = "causal", c.rotary_pairs = 4;
  CacheCall call(c);
  call.run();
  const std::int64_t units = call.cache.k.shape[0], size = c.page_size;
  Buffer k(c.dtype, call.cache.k.elements()), v(c.dtype, call.cache.v.elements());
  const auto each = [&](const auto& visit) {
    for (std::int64_t row = 0; row < units * size; ++row) {
      for (std::int64_t h = 0; h < c.h_kv; ++h) {
        for (std::int64_t e = 0; e < c.d; ++e) {
          visit((row * c.h_kv + h) * c.d + e,
                ((row / size * c.h_kv + h) * size + row % size) * c.d + e);
        }
      }
    }
  };
  const auto o = call.o.bytes();
  const Buffer k_after = call.k, v_after = call.v;
  call.restore();
  each([&](auto from, auto to) { k.set(to, call.k.get(from)), v.set(to, call.v.get(from)); });
  KvCache cache = call.cache;
  cache.k = TensorView(k.data(), c.dtype, {units, c.h_kv, size, c.d}).transposed(1, 2);
  cache.v = TensorView(v.data(), c.dtype, {units, c.h_kv, size, c.d}).transposed(1, 2);
  attention_kvcache(call.q_view, cache, call.o_view, call.options);
  EXPECT_EQ(call.o.bytes(), o);
  std::int64_t different = 0;
  each([&](auto from, auto to) {
    const double want[] = {k_after.get(from), v_after.get(from)};
    const double got[] = {k.get(to), v.get(to)};
    different += std::memcmp(want, got, sizeof want) != 0;
  });
  EXPECT_EQ(different, 0);
}

// Nor does a sequence depend on how much room the longest one has.
TEST(KvCache, ASequenceDoesNotDependOnTheRoomOfOthers) {
  CacheCase c{.lens = {100, 900}, .page_size = 16, .capacity = 1024};
  CacheCall call(c);
  call.run();
  const Buffer wide = call.o;
  call.cache.block_table.shape = {1, 7, 0, 0};
  call.cache.seqlens.shape[0] = call.q_view.shape[0] = call.o_view.shape[0] = 1;
  call.options.lse = {};
  attention_kvcache(call.q_view, call.cache, call.o_view, call.options);
  for (std::int64_t i = 0; i < c.h_q * c.d_v; ++i) EXPECT_EQ(call.o.get(i), wide.get(i));
}

TEST(KvCache, SizesOfZero) {
  for (const CacheCase& c :
       {CacheCase{.lens = {}, .s_new = 1}, CacheCase{.lens = {3, 0}, .s_new = 1, .s_q = 0},
        CacheCase{.lens = {3, 0}, .s_q = 2, .page_size = 16},
        CacheCase{.lens = {0, 0}, .capacity = 0, .shuffled = false},
        CacheCase{.lens = {2}, .s_new = 1, .h_q = 0, .h_kv = 0},
        CacheCase{.lens = {2}, .s_new = 1, .d_v = 0}}) {
    CacheCall call(c);
    call.run(2);
    EXPECT_LE(call.error().o, 1e-5);
    EXPECT_LE(call.error().lse, 1e-5);
    EXPECT_EQ(call.touched_slots(), 0);
    EXPECT_EQ(call.append_error(), 0.0);
  }
}

struct BadCache {
  const char* begins;
  std::function<void(CacheCall&)> spoil;
};

TEST(KvCache, BadCallsAreRefusedBeforeAnyWrite) {
  const BadCache all[] = {
      {"cache.seqlens: [1] = 32 and 1 new for 32", [](CacheCall& c) { c.seqlens[1] = 32; }},
      {"cache.seqlens: [0] = -1", [](CacheCall& c) { c.seqlens[0] = -1; }},
      {"cache.seqlens: dtype", [](CacheCall& c) { c.cache.seqlens.dtype = DType::float32; }},
      {"cache.seqlens: not given", [](CacheCall& c) { c.cache.seqlens = {}; }},
      {"cache.block_table: [0, 0] = 99", [](CacheCall& c) { c.table[0] = 99; }},
      {"cache.block_table: [1, 1] = -1", [](CacheCall& c) { c.table[3] = -1; }},
      {"cache.block_table: dtype int64",
       [](CacheCall& c) { c.cache.block_table.dtype = DType::int64; }},
      {"cache.block_table: int32[1, 2]", [](CacheCall& c) { c.cache.block_table.shape[0] = 1; }},
      {"cache.seqlens: [1] = 20 and 1 new for 16",
       [](CacheCall& c) { c.cache.block_table.shape[1] = 1; }},
      {"cache.block_table: two sequences append",
       [](CacheCall& c) { c.seqlens[0] = 20, c.table[1] = c.table[3]; }},
      {"cache.batch_idx: given beside", [](CacheCall& c) { c.cache.batch_idx = c.cache.seqlens; }},
      {"cache.v_new: not given", [](CacheCall& c) { c.cache.v_new = {}; }},
      {"cache.k: overlaps cache.k_new", [](CacheCall& c) { c.cache.k_new.data = c.k.data(); }},
      {"cache.k: overlaps cache.v", [](CacheCall& c) { c.cache.k.data = c.v.data(); }},
      {"cache.k: dtype bfloat16", [](CacheCall& c) { c.cache.k.dtype = DType::bfloat16; }},
      {"cache.k_new: ", [](CacheCall& c) { c.cache.k_new.shape[3] = 8; }},
      {"cache.v: ", [](CacheCall& c) { c.cache.v.shape[2] = 1; }},
      {"rotary.cos: 20 positions",
       [](CacheCall& c) { c.cache.rotary.cos.shape[0] = c.cache.rotary.sin.shape[0] = 20; }},
      {"rotary.sin: not given", [](CacheCall& c) { c.cache.rotary.sin = {}; }},
      {"rotary.cos: 9 pairs",
       [](CacheCall& c) { c.cache.rotary.cos.shape[1] = c.cache.rotary.sin.shape[1] = 9; }},
      {"seqused_k: given", [](CacheCall& c) { c.options.seqused_k = c.cache.seqlens; }},
      {"mask, column", [](CacheCall& c) { c.options.mask = "kk < 3"; }},
  };
  for (const BadCache& bad : all) {
    CacheCase c{.lens = {5, 20}, .s_new = 1, .page_size = 16, .capacity = 32};
    c.rotary_pairs = 8;
    CacheCall call(c);
    bad.spoil(call);
    const auto o = call.o.bytes(), k = call.k.bytes(), v = call.v.bytes();
    try {
      attention_kvcache(call.q_view, call.cache, call.o_view, call.options);
      ADD_FAILURE() << bad.begins << ": not refused";
    } catch (const onepass::Error& error) {
      EXPECT_EQ(std::string(error.what()).substr(0, std::string(bad.begins).size()), bad.begins);
    }
    EXPECT_EQ(call.o.bytes(), o) << bad.begins;
    EXPECT_EQ(call.k.bytes(), k) << bad.begins;
    EXPECT_EQ(call.v.bytes(), v) << bad.begins;
  }
  CacheCase rows{.lens = {5, 20}, .s_new = 1, .capacity = 32};
  CacheCall twice(rows);
  twice.table[1] = twice.table[0], twice.seqlens[1] = 5;
  EXPECT_THROW(attention_kvcache(twice.q_view, twice.cache, twice.o_view, twice.options),
               onepass::Error);
  twice.table[1] = 5;
  EXPECT_THROW(attention_kvcache(twice.q_view, twice.cache, twice.o_view, twice.options),
               onepass::Error);
}

}  // namespace
}  // namespace onepass::cpu_test
