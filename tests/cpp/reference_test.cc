// The reference by itself: values known in closed form or computed by a program of another author.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "conformance/generator.h"
#include "reference/attention.h"
#include "reference/backward.h"

namespace onepass::reference {
namespace {

using conformance::generate;
using conformance::ramp;
using conformance::sum_abs;

constexpr double infinity = std::numeric_limits<double>::infinity();

Tensor tensor(std::array<std::int64_t, 4> shape, std::vector<double> data) {
  return {shape, std::move(data)};
}

Tensor filled(std::array<std::int64_t, 4> shape, double value) {
  const std::int64_t n = shape[0] * shape[1] * shape[2] * shape[3];
  return {shape, std::vector<double>(static_cast<std::size_t>(n), value)};
}

Tensor generated(std::uint32_t seed, double amplitude, std::array<std::int64_t, 4> shape) {
  return {shape, generate(seed, amplitude, shape[0] * shape[1] * shape[2] * shape[3])};
}

/// q = 0 and v = key index + first: the output is the mean index of the visible keys.
Result mean_of_visible(std::int64_t s_q, std::int64_t s_kv, const std::string& mask,
                       double first = 0.0) {
  Options options;
  options.mask = mask;
  return attention(filled({1, s_q, 1, 4}, 0.0), filled({1, s_kv, 1, 4}, 0.0),
                   tensor({1, s_kv, 1, 1}, ramp(1, s_kv, 1, 1, first)), options);
}

TEST(Generator, FirstValues) {
  const auto one = generate(1, 1.0, 4), two = generate(2, 1.0, 2);
  EXPECT_EQ(one, (std::vector<double>{-0.40625, -0.671875, 0.171875, 0.5}));
  EXPECT_EQ(two, (std::vector<double>{-0.2109375, -0.4140625}));
}

TEST(Reference, EmptyRowProbes) {  // D01
  Options options;
  options.scale = 0.125;
  options.mask = "row < 5 & k <= row";
  const Tensor q = generated(1, 4, {1, 6, 2, 8}), k = generated(2, 1, {1, 10, 2, 8});
  const Tensor v = generated(3, 1, {1, 10, 2, 8});
  const Result result = attention(q, k, v, options);
  EXPECT_NEAR(result.o.at(0, 4, 1, 0), 0.473008912, 1e-8);
  EXPECT_NEAR(result.lse[1 * 6 + 4], 2.14786498, 1e-8);
  EXPECT_NEAR(sum_abs(result.o.data), 24.8567087, 1e-7);
  for (int head = 0; head < 2; ++head) {
    EXPECT_EQ(result.lse[static_cast<std::size_t>(head) * 6 + 5], -infinity);
    for (int i = 0; i < 8; ++i) EXPECT_EQ(result.o.at(0, 5, head, i), 0.0);
  }
}

TEST(Reference, HeadDim63Probes) {  // D13
  const Tensor q = generated(1, 4, {1, 96, 2, 63}), k = generated(2, 1, {1, 96, 2, 63});
  const Tensor v = generated(3, 1, {1, 96, 2, 63});
  const Result full = attention(q, k, v);
  EXPECT_NEAR(full.o.data.front(), -0.0179212541, 1e-10);
  EXPECT_NEAR(full.o.data.back(), -0.0826849926, 1e-10);
  EXPECT_NEAR(full.lse[0], 5.40088969, 1e-8);
  EXPECT_NEAR(sum_abs(full.o.data), 1215.82385, 1e-5);
  Options causal;
  causal.mask = "causal";
  EXPECT_NEAR(sum_abs(attention(q, k, v, causal).o.data), 1925.54796, 1e-5);
}

TEST(Reference, CausalAlignment) {  // D03
  const Result tall = mean_of_visible(8, 5, "causal", 1.0);
  const std::vector<double> tall_means = {0, 0, 0, 1, 1.5, 2, 2.5, 3};
  const Result wide = mean_of_visible(5, 6, "causal", 1.0);
  const std::vector<double> wide_means = {1.5, 2, 2.5, 3, 3.5};
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(tall.o.data[i], tall_means[i], 1e-14);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(wide.o.data[i], wide_means[i], 1e-14);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(tall.lse[i], -infinity);
}

TEST(Reference, WindowsAndOneTokenAlibi) {  // D08, D09
  const Result window = mean_of_visible(64, 64, "window(7, 0)");
  EXPECT_NEAR(window.o.data[3], 1.5, 1e-13);
  EXPECT_NEAR(window.o.data[63], 59.5, 1e-13);
  EXPECT_NEAR(window.lse[20], std::log(8.0), 1e-14);
  EXPECT_NEAR(mean_of_visible(64, 64, "window(-1, 2)").o.data[10], 6.0, 1e-13);

  Options options;
  options.score = "alibi(s, slopes)";
  options.arguments = {
      {"slopes", Array{{4}, Type::real, {}, {1 / 4., 1 / 16., 1 / 64., 1 / 256.}}}};
  const Result alibi = attention(filled({1, 1, 4, 1}, 0), filled({1, 37, 4, 1}, 0),
                                 tensor({1, 37, 4, 1}, ramp(1, 37, 4, 1)), options);
  const double o[] = {32.4827448, 24.5608859, 19.7713987, 18.4451574};
  const double lse[] = {1.50859543, 2.69941106, 3.34354535, 3.54147501};
  for (std::size_t h = 0; h < 4; ++h) {
    EXPECT_NEAR(alibi.o.data[h], o[h], 1e-7);
    EXPECT_NEAR(alibi.lse[h], lse[h], 1e-8);
  }
}

TEST(Reference, OneQueryProbes) {  // D18, first input
  const Tensor q = generated(1, 4, {1, 1, 1, 32}), k = generated(2, 1, {1, 257, 1, 32});
  const Tensor v = generated(3, 1, {1, 257, 1, 32});
  const Result result = attention(q, k, v);
  EXPECT_NEAR(result.o.data[0], -0.0360561663, 1e-10);
  EXPECT_NEAR(result.o.data[31], -0.00698717065, 1e-11);
  EXPECT_NEAR(result.lse[0], 6.17545486, 1e-8);
  EXPECT_NEAR(sum_abs(result.o.data), 1.66390265, 1e-8);
}

TEST(Reference, ScaleMayBeNegative) {  // D27
  const Tensor q = filled({1, 1, 1, 1}, 1.0), k = tensor({1, 3, 1, 1}, {0, 1, 2});
  const Tensor v = tensor({1, 3, 1, 1}, {10, 20, 30});
  Options options;
  options.scale = -2.0;
  EXPECT_NEAR(attention(q, k, v, options).o.data[0], 11.4906291, 1e-7);
  EXPECT_NEAR(attention(q, k, v, options).lse[0], 0.142931628, 1e-9);
  options.scale = 2.0;
  EXPECT_NEAR(attention(q, k, v, options).o.data[0], 28.5093709, 1e-7);
}

TEST(Reference, HiddenNanStaysHiddenVisibleNanDoesNot) {  // D05
  Tensor q = generated(1, 4, {1, 8, 1, 16}), k = generated(2, 1, {1, 8, 1, 16});
  const Tensor v = generated(3, 1, {1, 8, 1, 16});
  Options options;
  options.mask = "causal";
  const Result clean = attention(q, k, v, options);
  k.data[5 * 16 + 3] = std::nan("");
  const Result dirty = attention(q, k, v, options);
  for (std::size_t i = 0; i < 5 * 16; ++i) EXPECT_EQ(dirty.o.data[i], clean.o.data[i]);
  for (std::size_t i = 5 * 16; i < 8 * 16; ++i) EXPECT_TRUE(std::isnan(dirty.o.data[i]));
}

TEST(Reference, SinkIsOneMoreLogit) {
  Options options;
  options.sink = {std::log(3.0)};
  const Result result = attention(filled({1, 1, 1, 1}, 0), filled({1, 5, 1, 1}, 0),
                                  filled({1, 5, 1, 1}, 8.0), options);
  EXPECT_NEAR(result.o.data[0], 5.0, 1e-14);  // 5 keys of weight 1/8 each
  EXPECT_NEAR(result.lse[0], std::log(8.0), 1e-14);
  options.mask = "false";
  const Result empty = attention(filled({1, 1, 1, 1}, 0), filled({1, 5, 1, 1}, 0),
                                 filled({1, 5, 1, 1}, 8.0), options);
  EXPECT_EQ(empty.o.data[0], 0.0);
  EXPECT_EQ(empty.lse[0], std::log(3.0));
}

TEST(Reference, MergeOfPartsIsTheWhole) {
  const Tensor q = generated(1, 4, {1, 5, 2, 8}), k = generated(2, 1, {1, 20, 2, 8});
  const Tensor v = generated(3, 1, {1, 20, 2, 8});
  Options first, second, none;
  first.mask = "k < 7", second.mask = "k >= 7", none.mask = "false";
  const Result a = attention(q, k, v, first), b = attention(q, k, v, second);
  const Result whole = attention(q, k, v), merged = merge(a, b);
  const Result empty = attention(q, k, v, none);
  for (std::size_t i = 0; i < whole.o.data.size(); ++i) {
    EXPECT_NEAR(merged.o.data[i], whole.o.data[i], 1e-14);
  }
  for (std::size_t i = 0; i < whole.lse.size(); ++i) {
    EXPECT_NEAR(merged.lse[i], whole.lse[i], 1e-13);
  }
  EXPECT_EQ(merge(a, empty).o.data, a.o.data);
  EXPECT_EQ(merge(empty, a).lse, a.lse);
  EXPECT_EQ(merge(empty, empty).lse, empty.lse);
}

TEST(Philox, KnownAnswers) {  // published with the generator's own library
  using Words = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, ChunksSeeTheMaskOfTheWhole) {
  const Dropout whole{0.48, 42, 7};
  Dropout chunk = whole;
  chunk.row0 = 16, chunk.col0 = 32;
  const auto all = dropout_mask(whole, 2, 2, 64, 64);
  const auto part = dropout_mask(chunk, 2, 2, 48, 32);
  std::size_t kept_pairs = 0;
  for (const std::uint8_t pair : all) kept_pairs += pair;
  EXPECT_GT(kept_pairs, 0.504 * 16384);
  EXPECT_LT(kept_pairs, 0.536 * 16384);
  for (std::size_t head = 0; head < 4; ++head) {
    for (std::size_t row = 0; row < 48; ++row) {
      for (std::size_t col = 0; col < 32; ++col) {
        ASSERT_EQ(part[(head * 48 + row) * 32 + col], all[(head * 64 + row + 16) * 64 + col + 32]);
      }
    }
  }
}

TEST(Rounding, SixteenBitFormats) {
  EXPECT_EQ(round_to(Format::bfloat16, 1.0 + 1.0 / 256), 1.0);              // tie to even
  EXPECT_EQ(round_to(Format::bfloat16, 1.0 + 3.0 / 256), 1.0 + 4.0 / 256);  // tie to even
  EXPECT_EQ(round_to(Format::float16, 65519.0), 65504.0);
  EXPECT_EQ(round_to(Format::float16, 65520.0), infinity);
  EXPECT_EQ(round_to(Format::float16, std::ldexp(1.0, -24)), std::ldexp(1.0, -24));
  EXPECT_EQ(round_to(Format::float16, std::ldexp(1.0, -25)), 0.0);
  EXPECT_EQ(round_to(Format::float32, 0.1), static_cast<double>(0.1f));
}

// The rows [begin, end) of a (1, tokens, h, d) tensor.
Tensor rows(const Tensor& tensor, std::int64_t begin, std::int64_t end) {
  const std::int64_t row = tensor.shape[2] * tensor.shape[3];
  const auto from = tensor.data.begin();
  return {{1, end - begin, tensor.shape[2], tensor.shape[3]},
          {from + begin * row, from + end * row}};
}

TEST(Reference, PackedSequencesAreSeparateCalls) {
  const std::vector<std::int64_t> cu_q = {0, 0, 5, 9}, cu_k = {0, 3, 10, 15}, used = {2, 7, 3};
  const Tensor q = generated(1, 4, {1, 9, 4, 8}), k = generated(2, 1, {1, 15, 2, 8});
  const Tensor v = generated(3, 1, {1, 15, 2, 6}), dout = generated(4, 1, {1, 9, 4, 6});
  Options packed;
  packed.mask = "causal";
  packed.score = "s - 0.1 * abs(q - k) * (b + 1)";
  packed.dropout = {0.3, 11, 5};
  packed.cu_seqlens_q = cu_q, packed.cu_seqlens_k = cu_k, packed.seqused_k = used;
  const Result all = attention(q, k, v, packed);
  const Gradients gradients = attention_backward(dout, q, k, v, packed);
  for (std::size_t b = 0; b < 3; ++b) {
    Options one = packed;
    one.cu_seqlens_q.clear(), one.cu_seqlens_k.clear(), one.seqused_k.clear();
    one.score = "s - 0.1 * abs(q - k) * " + std::to_string(b + 1);
    one.dropout.offset += b << 32;
    const std::int64_t k_end = cu_k[b] + used[b];
    const Tensor q_b = rows(q, cu_q[b], cu_q[b + 1]), dout_b = rows(dout, cu_q[b], cu_q[b + 1]);
    const Tensor k_b = rows(k, cu_k[b], k_end), v_b = rows(v, cu_k[b], k_end);
    EXPECT_EQ(attention(q_b, k_b, v_b, one).o.data, rows(all.o, cu_q[b], cu_q[b + 1]).data);
    const Gradients of_one = attention_backward(dout_b, q_b, k_b, v_b, one);
    EXPECT_EQ(of_one.dq.data, rows(gradients.dq, cu_q[b], cu_q[b + 1]).data);
    EXPECT_EQ(of_one.dk.data, rows(gradients.dk, cu_k[b], k_end).data);
    EXPECT_EQ(of_one.dv.data, rows(gradients.dv, cu_k[b], k_end).data);
    for (const double unused : rows(gradients.dk, k_end, cu_k[b + 1]).data) EXPECT_EQ(unused, 0.0);
  }
}

TEST(Reference, PackedSequencesWithoutQueriesProbes) {  // D16
  struct Probe {
    std::int64_t d;
    double o, dq, dk, dv;
  };
  for (const Probe& probe : {Probe{64, 1302.40278, 236.974179, 558.580639, 628.536319},
                             {256, 5480.41459, 1136.44156, 2686.70084, 2786.90295}}) {
    Options options;
    options.mask = "causal";
    options.cu_seqlens_q = {0, 0, 12, 20, 20}, options.cu_seqlens_k = {0, 25, 42, 51, 80};
    const Tensor q = generated(1, 4, {1, 20, 4, probe.d}), k = generated(2, 1, {1, 80, 1, probe.d});
    const Tensor v = generated(3, 1, k.shape), dout = generated(4, 1, q.shape);
    const Gradients gradients = attention_backward(dout, q, k, v, options);
    EXPECT_NEAR(sum_abs(attention(q, k, v, options).o.data), probe.o, 1e-5 * probe.o);
    EXPECT_NEAR(sum_abs(gradients.dq.data), probe.dq, 1e-5 * probe.dq);
    EXPECT_NEAR(sum_abs(gradients.dk.data), probe.dk, 1e-5 * probe.dk);
    EXPECT_NEAR(sum_abs(gradients.dv.data), probe.dv, 1e-5 * probe.dv);
    if (probe.d == 64) {
      EXPECT_NEAR(gradients.dk.at(0, 25, 0, 0), -0.224900032, 1e-8);
    }
  }
}

TEST(Reference, AbsoluteTermsBoundTheGradients) {
  const Tensor q = generated(1, 4, {1, 7, 2, 8}), k = generated(2, 1, {1, 1, 2, 8});
  const Tensor dout = generated(4, 1, {1, 7, 2, 8});
  const Gradients gradients = attention_backward(dout, q, k, k);
  const Gradients terms = absolute_terms(dout, q, k, k);
  for (std::size_t i = 0; i < gradients.dk.data.size(); ++i) {  // one key: all of dk cancels
    EXPECT_EQ(gradients.dk.data[i], 0.0);
    EXPECT_GT(terms.dk.data[i], 0.1);
    EXPECT_GE(terms.dv.data[i], std::fabs(gradients.dv.data[i]));
  }
}

TEST(Reference, PlainBackwardIsNearTheExactOne) {
  const Tensor q = generated(1, 1, {1, 7, 2, 8}), k = generated(2, 1, {1, 9, 2, 8});
  const Tensor dout = generated(4, 1, {1, 7, 2, 8});
  const Gradients exact = attention_backward(dout, q, k, k);
  for (const auto& [format, error] :
       {std::pair{Format::float32, 1e-6}, {Format::float16, 4e-3}, {Format::bfloat16, 2e-3}}) {
    const Gradients plain = plain_backward(format, dout, q, k, k);
    double worst = 0.0;
    for (std::size_t i = 0; i < exact.dq.data.size(); ++i) {
      worst = std::max(worst, std::fabs(plain.dq.data[i] - exact.dq.data[i]));
    }
    EXPECT_LE(worst, error);
    EXPECT_GE(worst, error / 100);
  }
}

}  // namespace
}  // namespace onepass::reference
