// Sequences of different lengths: each gives what it gives alone, whatever lies beside it.
#include <gtest/gtest.h>

#include <cmath>

#include "by_dtype.h"
#include "ragged_case.h"

namespace onepass::cpu_test {
namespace {

// Of bfloat16: outputs below 1 rounded to 8 bits, weights too where they go in pairs.
constexpr ByDType tolerance{.float64 = 1e-13, .float32 = 1e-5, .bfloat16 = 4e-3, .float16 = 5e-4};

constexpr ByDType lse_tolerance{
    .float64 = 1e-13, .float32 = 1e-5, .bfloat16 = 1.5e-4, .float16 = 1e-5};

void expect_right(const Ragged& r, const std::string& what) {
  RaggedCall call(r);
  for (const std::string& isa : isas_for(r.dtype)) {
    const ForcedIsa forced(isa.c_str());
    call.run(1);
    const RaggedCall::Error error = call.error();
    EXPECT_LE(error.o, tolerance(r.dtype)) << what << " " << isa << " " << name(r.dtype);
    EXPECT_LE(error.lse, lse_tolerance(r.dtype)) << what << " " << isa << " " << name(r.dtype);
    const auto o = call.o.bytes(), lse = call.lse.bytes();
    call.run(2);
    EXPECT_EQ(call.o.bytes(), o) << what << " " << isa << ": 2 threads";
    EXPECT_EQ(call.lse.bytes(), lse) << what << " " << isa << ": 2 threads";
  }
}

reference::Argument integers(const std::string& name, std::vector<std::int64_t> shape,
                             std::vector<std::int64_t> values) {
  return {name,
          reference::Array{std::move(shape), reference::Type::integer, std::move(values), {}}};
}

const Ragged ragged{.q_lens = {5, 0, 130, 1, 64, 7, 0},
                    .k_lens = {9, 70, 130, 0, 65, 200, 0},
                    .h_q = 4,
                    .h_kv = 2,
                    .d = 16,
                    .d_v = 24};

TEST(Varlen, EveryDtype) {
  for (const DType dtype : {DType::float64, DType::float32, DType::bfloat16, DType::float16}) {
    Ragged r = ragged;
    r.dtype = dtype;
    expect_right(r, "full");
    r.options.mask = "causal";
    r.reference = [](std::int64_t) { return reference::Options{.mask = "causal"}; };
    r.index_dtype = DType::int64;
    expect_right(r, "causal");
  }
}

// Masks and scores of every reader: bounds, intervals, summaries, arrays by sequence, head, place.
TEST(Varlen, EveryMaskAndScoreSeesItsOwnSequence) {
  for (const char* mask :
       {"causal", "window(20, 5)", "chunked(32)", "prefix(7)", "k <= q & (row + col) % 3 != 0",
        "col < s_kv - 2 & row + 1 < s_q", "(b + h_kv) % 2 == 0 | k <= q", "q // 16 == k // 16",
        "window(3, 3) | col == 0"}) {
    Ragged r = ragged;
    r.options.mask = mask;
    r.reference = [mask](std::int64_t) { return reference::Options{.mask = mask}; };
    expect_right(r, mask);
    r.options.align = Align::top_left;
    r.reference = [mask](std::int64_t) {
      return reference::Options{.mask = mask, .top_left = true};
    };
    expect_right(r, std::string(mask) + ", top left");
  }
  for (const char* score : {"s - 0.01 * (q - k)", "5 * tanh(s / 5) + 0.1 * b",
                            "s * (row + 1) / s_q", "where(col < s_kv // 2, s, s - 1)"}) {
    Ragged r = ragged;
    r.options.score = score;
    r.reference = [score](std::int64_t) { return reference::Options{.score = score}; };
    expect_right(r, score);
  }
}

TEST(Varlen, ArraysBySequenceAndByPackedToken) {
  Ragged r = ragged;
  r.q_lens = r.k_lens = {5, 0, 130, 1, 64};
  std::vector<std::int64_t> lengths = {3, 9, 100, 1, 40}, ids;
  for (std::int64_t token = 0; token < 200; ++token) ids.push_back(token / 9);
  r.options.mask = "lengths(n) & causal";
  r.options.args = {{"n", TensorView(lengths.data(), DType::int64, {5})}};
  r.reference = [&](std::int64_t) {
    return reference::Options{.mask = "lengths(n) & causal",
                              .arguments = {integers("n", {5}, lengths)}};
  };
  expect_right(r, r.options.mask);
  r.options.mask = "document(ids)";
  r.options.args = {{"ids", TensorView(ids.data(), DType::int64, {200})}};
  // The reference counts tokens of a sequence alone from b * s: its ids are moved there.
  r.reference = [&](std::int64_t b) {
    std::vector<std::int64_t> first = {0, 5, 5, 135, 136};
    const std::int64_t s = r.q_lens[static_cast<std::size_t>(b)];
    std::vector<std::int64_t> moved(static_cast<std::size_t>((b + 1) * s), -1);
    for (std::int64_t i = 0; i < s; ++i) {
      moved[static_cast<std::size_t>(b * s + i)] =
          ids[static_cast<std::size_t>(first[static_cast<std::size_t>(b)] + i)];
    }
    return reference::Options{.mask = "document(ids)",
                              .arguments = {integers("ids", {(b + 1) * s}, moved)}};
  };
  expect_right(r, r.options.mask);
}

TEST(Varlen, StartsSinkAndDropout) {
  Ragged r = ragged;
  std::vector<std::int64_t> starts = {4, 1, 100, -3, 7, 50, 2};
  r.options.mask = "causal";
  r.options.q_start = TensorView(starts.data(), DType::int64, {7});
  r.options.dropout = {.p = 0.3, .seed = 11};
  std::vector<float> sink = {0.5f, -1.0f, 2.0f, 0.0f};
  r.options.sink = TensorView(sink.data(), {4});
  r.reference = [&](std::int64_t) {
    return reference::Options{.mask = "causal",
                              .sink = {sink.begin(), sink.end()},
                              .q_start = starts,
                              .dropout = {.p = 0.3, .seed = 11}};
  };
  expect_right(r, "starts, sink, dropout");
}

TEST(Varlen, RoomsThatAreNotFull) {
  const auto causal = [](std::int64_t) { return reference::Options{.mask = "causal"}; };
  for (const bool packed_q : {true, false}) {
    for (const bool packed_k : {true, false}) {
      Ragged r = ragged;
      r.rooms = {64, 70, 200, 3, 66, 301, 10};
      r.packed_q = packed_q, r.packed_k = packed_k;
      if (!packed_q) r.q_lens = {6, 6, 6, 6, 6, 6, 6};
      r.options.mask = "causal";
      r.reference = causal;
      for (const DType dtype : {DType::float32, DType::bfloat16}) {
        r.dtype = dtype;
        expect_right(r, packed_q ? (packed_k ? "packed" : "packed q") : "dense q");
      }
    }
  }
}

// Heads of the dims that keep values in place, and that do not.
TEST(Varlen, HeadDims) {
  for (const std::int64_t d : {1, 7, 64, 128, 256}) {
    Ragged r = ragged;
    r.d = d, r.d_v = d;
    r.h_q = r.h_kv = 1;
    expect_right(r, "d " + std::to_string(d));
  }
}

// Also where the values of few queries stay in place and those of many are packed.
TEST(Varlen, ASequenceDoesNotDependOnItsNeighbours) {
  for (const std::int64_t h_kv : {1, 2}) {
    Ragged r{.q_lens = {70, 33, 5, 120},
             .k_lens = {900, 1000, 120, 500},
             .h_q = 4,
             .h_kv = h_kv,
             .d = 32,
             .d_v = 32};
    r.options.mask = "causal";
    RaggedCall all(r);
    all.run(2);
    for (std::int64_t b = 0; b < 4; ++b) {
      const auto at = static_cast<std::size_t>(b);
      Ragged one = r;
      one.q_lens = {r.q_lens[at]}, one.k_lens = {r.k_lens[at]};
      RaggedCall alone(one);
      const auto copy = [&](Buffer& to, const Buffer& from, std::int64_t first, std::int64_t rows,
                            std::int64_t width) {
        for (std::int64_t i = 0; i < rows * width; ++i) to.set(i, from.get(first * width + i));
      };
      copy(alone.q, all.q, all.q_first[at], r.q_lens[at], r.h_q * r.d);
      copy(alone.k, all.k, all.k_first[at], r.k_lens[at], r.h_kv * r.d);
      copy(alone.v, all.v, all.k_first[at], r.k_lens[at], r.h_kv * r.d_v);
      alone.run(1);
      EXPECT_EQ(alone.result(0), all.result(b)) << "sequence " << b << " of " << h_kv << " heads";
    }
  }
}

TEST(Varlen, NoSequencesAndNoTokens) {
  for (const Ragged& r :
       {Ragged{}, Ragged{.q_lens = {0, 0}, .k_lens = {0, 0}},
        Ragged{.q_lens = {0, 0}, .k_lens = {3, 0}}, Ragged{.q_lens = {2, 0}, .k_lens = {0, 0}}}) {
    RaggedCall call(r);
    call.run(2);
    EXPECT_LE(call.error().o, 0.0);
    EXPECT_LE(call.error().lse, 0.0);
  }
}

TEST(Varlen, EmptyQuerySequencesForward) {
  for (const auto& [d, sum] : {std::pair{std::int64_t{64}, 1302.40278}, {256, 5480.41459}}) {
    Ragged r{
        .q_lens = {0, 12, 8, 0}, .k_lens = {25, 17, 9, 29}, .h_q = 4, .h_kv = 1, .d = d, .d_v = d};
    r.options.mask = "causal";
    RaggedCall call(r);
    const auto generate = [](Buffer& buffer, std::uint32_t x, double scale) {
      const auto count = static_cast<std::int64_t>(buffer.bytes().size()) / 4;
      for (std::int64_t i = 0; i < count; ++i) {
        x = 1664525U * x + 1013904223U;
        buffer.set(i, scale * (static_cast<double>((x >> 16) % 257) - 128.0) / 128.0);
      }
    };
    generate(call.q, 1, 4.0), generate(call.k, 2, 1.0), generate(call.v, 3, 1.0);
    call.run();
    double total = 0.0;
    for (std::int64_t i = 0; i < call.o_view.elements(); ++i) total += std::abs(call.o.get(i));
    EXPECT_NEAR(total, sum, 1e-5 * sum) << d;
  }
}

// ALiBi over 37 packed tokens beside another sequence: the last row, by closed form.
TEST(Varlen, AlibiCountsInsideTheSequence) {
  Ragged r{.q_lens = {5, 37}, .k_lens = {5, 37}, .h_q = 4, .h_kv = 4, .d = 8, .d_v = 8};
  const std::vector<float> slopes = {0.25f, 0.0625f, 0.015625f, 0.00390625f};
  r.options.score = "s - slopes[h] * abs(q - k)";
  r.options.args = {{"slopes", TensorView(slopes.data(), {4})}};
  RaggedCall call(r);
  for (std::int64_t i = 0; i < call.q_view.elements(); ++i) call.q.set(i, 0.0);
  for (std::int64_t key = 0; key < 37; ++key) {
    for (std::int64_t e = 0; e < 32; ++e) call.v.set((5 + key) * 32 + e, static_cast<double>(key));
  }
  call.run();
  const double o[] = {32.4827448, 24.5608859, 19.7713987, 18.4451574};
  const double lse[] = {1.50859543, 2.69941106, 3.34354535, 3.54147501};
  for (std::int64_t h = 0; h < 4; ++h) {
    EXPECT_NEAR(call.o.get((41 * 4 + h) * 8), o[h], 1e-4);
    EXPECT_NEAR(call.lse.get(h * 42 + 41), lse[h], 1e-5);
  }
}

struct BadLengths {
  const char* begins;
  std::function<void(RaggedCall&, std::vector<std::int32_t>&)> spoil;
};

TEST(Varlen, BadLengthsAreRefusedBeforeAnyWrite) {
  const auto view = [](const std::vector<std::int32_t>& values, DType dtype = DType::int32) {
    return TensorView(values.data(), dtype, {static_cast<std::int64_t>(values.size())});
  };
  using Integers = std::vector<std::int32_t>;
  const BadLengths all[] = {
      {"cu_seqlens_q: [0] = 1",
       [&](RaggedCall& c, Integers& i) {
         c.options.cu_seqlens_q = view(i = {1, 5, 9});
       }},
      {"cu_seqlens_q: [2] = 9 after 10",
       [&](RaggedCall& c, Integers& i) {
         c.options.cu_seqlens_q = view(i = {0, 10, 9});
       }},
      {"cu_seqlens_k: [2] = 4 after 5",
       [&](RaggedCall& c, Integers& i) {
         c.options.cu_seqlens_k = view(i = {0, 5, 4});
       }},
      {"cu_seqlens_k: [2] = 19 for 20",
       [&](RaggedCall& c, Integers& i) {
         c.options.cu_seqlens_k = view(i = {0, 5, 19});
       }},
      {"cu_seqlens_k: dtype float32",
       [&](RaggedCall& c, Integers& i) {
         c.options.cu_seqlens_k = view(i = {0, 5, 20}, DType::float32);
       }},
      {"cu_seqlens_k: int32[4]",
       [&](RaggedCall& c, Integers& i) {
         c.options.cu_seqlens_k = view(i = {0, 5, 6, 20});
       }},
      {"cu_seqlens_q: no element",
       [&](RaggedCall& c, Integers& i) { c.options.cu_seqlens_q = view(i = {}); }},
      {"cu_seqlens_q: null",
       [&](RaggedCall& c, Integers&) { c.options.cu_seqlens_q.data = nullptr; }},
      {"seqused_k: [1] = 16 of 15",
       [&](RaggedCall& c, Integers& i) {
         c.options.seqused_k = view(i = {5, 16});
       }},
      {"seqused_k: [0] = -1",
       [&](RaggedCall& c, Integers& i) {
         c.options.seqused_k = view(i = {-1, 15});
       }},
      {"seqused_k: int32[1]",
       [&](RaggedCall& c, Integers& i) { c.options.seqused_k = view(i = {5}); }},
      {"q: ", [](RaggedCall& c, Integers&) { c.options.cu_seqlens_q = {}; }},
      {"k: ", [](RaggedCall& c, Integers&) { c.options.cu_seqlens_k = {}; }},
      {"lse: ",
       [](RaggedCall& c, Integers&) {
         c.options.lse = TensorView(c.lse.data(), DType::float32, {9, 2});
       }},
      {"o: ", [](RaggedCall& c, Integers&) { c.o_view.shape[0] = 8; }},
  };
  for (const BadLengths& bad : all) {
    RaggedCall call({.q_lens = {5, 4}, .k_lens = {5, 15}, .h_q = 2, .h_kv = 2});
    Integers values;
    bad.spoil(call, values);
    const auto before = call.o.bytes();
    try {
      attention(call.q_view, call.k_view, call.v_view, call.o_view, call.options);
      ADD_FAILURE() << bad.begins << ": not refused";
    } catch (const onepass::Error& error) {
      EXPECT_EQ(std::string(error.what()).substr(0, std::string(bad.begins).size()), bad.begins);
    }
    EXPECT_EQ(call.o.bytes(), before) << bad.begins;
  }
}

// A plan is made before the lengths are known.
TEST(Varlen, PlansWithoutMemory) {
  Attention options{.mask = "causal"};
  options.cu_seqlens_q = options.cu_seqlens_k = TensorView(nullptr, DType::int32, {9});
  const TensorView rows(nullptr, DType::float32, {1000, 4, 64});
  const Plan made = plan(rows, rows, rows, rows, options, 2);
  EXPECT_GT(made.workspace_bytes, 0);
  EXPECT_EQ(made.problem_line.find("q_start"), std::string::npos);
}

}  // namespace
}  // namespace onepass::cpu_test
