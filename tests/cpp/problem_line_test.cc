// Problem lines: what is parsed prints back, what a call computes prints as a line, and errors name
// their column.
#include "core/problem_line.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "core/kv_cache.h"

namespace onepass {
namespace {

class ProblemLineText : public testing::TestWithParam<const char*> {};

TEST_P(ProblemLineText, PrintsAsItWasWritten) {
  const Result<ProblemLine> line = parse_problem_line(GetParam());
  ASSERT_TRUE(line.ok()) << line.status().message;
  EXPECT_EQ(to_text(line.value()), GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Lines, ProblemLineText,
    testing::Values(
        "fwd f32 b=1 h=1 s=1 d=64", "fwd bf16 b=2 h=32/8 s=4096 d=128 mask=causal",
        "fwd f16 b=0 h=1 s=1/77 d=192/128 out=f32 mask=window(255,0)",
        "fwd f64 b=1 h=2 s=8 d=4 mask=\"q - 5 < k\" score=\"s * 2\" scale=-0.125",
        "fwd f32 b=2 h=2 s=8 d=4 align=top_left q_start=[0,-64] k_start=7",
        "fwd f32 b=2 h=2 s=8 d=4 q_start=int64[b] k_start=int32[b]",
        "fwd f32 b=2 h=2 s=8 d=4 dropout=0.1 seed=18446744073709551615 offset=1 row0=16",
        "fwd f32 b=1 h=2 s=8 d=4 definitions=\"near(n) = abs(q - k) < n\" lse=yes",
        "fwd f32 b=1 h=2 s=8 d=4 mask=k<n sink=random n=4 arg.b=1.5 arg.mask=true",
        "fwd f32 b=1 h=2 s=8 d=4 mask=document(i) i=int32[1,8]",
        "fwd f32 b=1 h=2 s=8 d=4 device=cuda", "fwd f32 b=1 h=2 s=8 d=4 lse=yes device=cuda:3"));

TEST(ProblemLine, ReadsWhatItDoesNotPrint) {
  const Result<ProblemLine> line =
      parse_problem_line(" fwd  float32\ts=4/4 mask=window(3, 0) score='s' align=bottom_right ");
  ASSERT_TRUE(line.ok()) << line.status().message;
  EXPECT_EQ(to_text(line.value()), "fwd f32 b=1 h=1 s=4 d=64 mask=\"window(3, 0)\" score=s");
}

TEST(ProblemLine, ErrorsNameTheirColumn) {
  const std::array<std::pair<const char*, int>, 21> bad{{{"", 1},
                                                         {"fwd f32 device=gpu", 9},
                                                         {"fwd f32 device=cuda:-1", 9},
                                                         {"back f32", 1},
                                                         {"fwd", 4},
                                                         {"fwd b=1", 8},
                                                         {"fwd int32", 5},
                                                         {"fwd f32 b=1/2", 9},
                                                         {"fwd f32 h=", 9},
                                                         {"fwd f32 s=-1", 9},
                                                         {"fwd f32 s=1/2/3", 9},
                                                         {"fwd f32 d=1e3", 9},
                                                         {"fwd f32 d=2000000000000", 9},
                                                         {"fwd f32 mask='q", 14},
                                                         {"fwd f32 mask='q'k", 17},
                                                         {"fwd f32 mask=q'k", 15},
                                                         {"fwd f32 mask=f(q b=1", 14},
                                                         {"fwd f32 scale=x", 9},
                                                         {"fwd f32 seed=-1", 9},
                                                         {"fwd f32 q_start=1,2", 9},
                                                         {"fwd f32 n= m=2", 9}}};
  for (const auto& [text, column] : bad) {
    const Result<ProblemLine> line = parse_problem_line(text);
    ASSERT_FALSE(line.ok()) << text;
    const std::string start = "problem line, column " + std::to_string(column) + ": ";
    EXPECT_TRUE(line.status().message.starts_with(start)) << text << "\n" << line.status().message;
    EXPECT_EQ(line.status().code, Code::invalid_argument);
  }
}

// What validate sees of a call, as a line.
std::string line_of_call(const Attention& options, DType dtype = DType::float32) {
  static std::array<double, 4096> memory;
  const Result<Problem> problem =
      validate({memory.data(), dtype, {2, 4, 6, 8}}, {memory.data(), dtype, {2, 9, 3, 8}},
               {memory.data(), dtype, {2, 9, 3, 5}}, {memory.data(), dtype, {2, 4, 6, 5}}, options);
  return problem.ok() ? problem.value().line() : problem.status().message;
}

TEST(ProblemLine, SaysWhatACallComputes) {
  const std::string start = "fwd f32 b=2 h=6/3 s=4/9 d=8/5";
  EXPECT_EQ(line_of_call({}), start);
  EXPECT_EQ(line_of_call({}, DType::bfloat16), "fwd bf16 b=2 h=6/3 s=4/9 d=8/5");
  EXPECT_EQ(line_of_call({.mask = "causal"}), start + " mask=causal");
  EXPECT_EQ(line_of_call({.mask = "k < n", .args = {{"n", std::int64_t{5}}}}),
            start + " mask=\"k < n\" n=5");
  EXPECT_EQ(line_of_call({.score = "s * n", .args = {{"n", 2.0}}, .scale = 1.0}),
            start + " score=\"s * n\" scale=1 n=2.0");
  EXPECT_EQ(line_of_call({.align = Align::top_left}), start + " align=top_left");
  EXPECT_EQ(
      line_of_call({.mask = "near(2)", .definitions = "half = 2\nnear(n) = q - k < n * half"}),
      start + " mask=near(2) definitions=\"half = 2;near(n) = q - k < n * half\"");
  EXPECT_EQ(line_of_call({.q_start = std::int64_t{3}, .k_start = std::int64_t{-2}}),
            start + " q_start=3 k_start=-2");
  EXPECT_EQ(line_of_call({.dropout = {.p = 0.5, .seed = 9}}), start + " dropout=0.5 seed=9");
  const std::array<std::int64_t, 2> starts{5, 7};
  const std::array<float, 6> slopes{};
  EXPECT_EQ(line_of_call({.score = "alibi(s, m)",
                          .args = {{"m", TensorView(slopes.data(), {6})}},
                          .sink = {slopes.data(), {6}},
                          .q_start = TensorView(starts.data(), DType::int64, {2})}),
            start + " score=\"alibi(s, m)\" q_start=int64[b] sink=random m=float32[6]");
}

TEST(ProblemLine, SequencesOfDifferentLengths) {
  const auto read = [](const char* text) {
    const Result<ProblemLine> line = parse_problem_line(text);
    return line.ok() ? to_text(line.value()) : line.status().message;
  };
  EXPECT_EQ(read("fwd f32 q_lens=[5,0,7] k_lens=[9,2,8]"),
            "fwd f32 b=3 h=1 s=12/19 d=64 q_lens=[5,0,7] k_lens=[9,2,8]");
  EXPECT_EQ(read("fwd f32 b=2 s=9 q_lens=int32[b] k_used=int64[b]"),
            "fwd f32 b=2 h=1 s=9 d=64 q_lens=int32[b] k_used=int64[b]");
  EXPECT_EQ(read("fwd f32 s=1/64 k_used=[5,9] page=16 new=1"),
            "fwd f32 b=2 h=1 s=1/64 d=64 k_used=[5,9] page=16 new=1");
  for (const char* bad :
       {"fwd f32 b=3 q_lens=[5,7]", "fwd f32 s=3 q_lens=[5,7]", "fwd f32 q_lens=[5,7] k_lens=[5]",
        "fwd f32 q_lens=5", "fwd f32 q_lens=[5,-1]", "fwd f32 page=-1", "fwd f32 new=x"}) {
    EXPECT_FALSE(parse_problem_line(bad).ok()) << bad;
  }
}

TEST(ProblemLine, SaysPackedLengthsAndCaches) {
  static std::array<double, 8192> memory;
  const std::array<std::int32_t, 8> zeros{};
  const TensorView offsets(zeros.data(), DType::int32, {3}),
      lengths(zeros.data(), DType::int32, {2});
  Attention options;
  options.cu_seqlens_q = options.cu_seqlens_k = offsets, options.seqused_k = lengths;
  const TensorView packed(memory.data(), DType::float32, {9, 6, 8});
  EXPECT_EQ(validate(packed, packed, packed, packed, options).value().line(),
            "fwd f32 b=2 h=6 s=9 d=8 q_lens=int32[b] k_lens=int32[b] k_used=int32[b]");
  const TensorView q(memory.data(), DType::float32, {2, 1, 6, 8});
  KvCache cache;
  cache.k = cache.v = TensorView(memory.data(), DType::float32, {5, 16, 3, 8});
  cache.k_new = cache.v_new = TensorView(memory.data(), DType::float32, {2, 1, 3, 8});
  cache.seqlens = lengths, cache.block_table = TensorView(zeros.data(), DType::int32, {2, 4});
  EXPECT_EQ(validate(q, cache, q, {}).value().line(),
            "fwd f32 b=2 h=6/3 s=1/64 d=8 k_used=int32[b] page=16 new=1");
}

TEST(ProblemLine, SaysArgumentsThatFoldingDropped) {
  const std::string start = "fwd f32 b=2 h=6/3 s=4/9 d=8/5";
  EXPECT_EQ(line_of_call({.mask = "k<n", .args = {{"n", std::int64_t{1}}}}),
            start + " mask=k<n n=1");
  EXPECT_EQ(line_of_call({.mask = "k<n*0+q", .args = {{"n", std::int64_t{7}}}}),
            start + " mask=k<n*0+q n=7");
  EXPECT_EQ(line_of_call({.mask = "on&causal", .args = {{"on", true}}}),
            start + " mask=on&causal on=true");
  EXPECT_EQ(
      line_of_call(
          {.mask = "causal", .definitions = "near = q - k < n", .args = {{"n", std::int64_t{0}}}}),
      start + " mask=causal definitions=\"near = q - k < n\" n=0");
  // A mask that hides nothing is left out with its arguments, which would have no reader.
  EXPECT_EQ(line_of_call({.mask = "k >= n | true", .args = {{"n", std::int64_t{5}}}}), start);
}

TEST(ProblemLine, LinesOfCallsReadBack) {
  for (const Attention& options :
       {Attention{.mask = "causal"},
        Attention{.mask = "q - n < k", .args = {{"n", std::int64_t{1}}}},
        Attention{.mask = "q - n < k", .args = {{"n", std::int64_t{5}}}, .align = Align::top_left},
        Attention{.score = "s * b_1", .args = {{"b_1", 0.1}}, .scale = 1e-9}}) {
    const std::string text = line_of_call(options);
    const Result<ProblemLine> line = parse_problem_line(text);
    ASSERT_TRUE(line.ok()) << line.status().message;
    EXPECT_EQ(to_text(line.value()), text);
  }
}

}  // namespace
}  // namespace onepass
