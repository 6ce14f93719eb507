// Bad calls: each is refused with its code and a message that begins with the argument's name,
// before anything is written.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "onepass/onepass.h"

namespace onepass {
namespace {

// A small valid call that each test spoils in one place.
struct Call {
  std::vector<float> q_data = std::vector<float>(2 * 3 * 4 * 8, 0.5f);
  std::vector<float> k_data = std::vector<float>(2 * 5 * 2 * 8, 0.5f);
  std::vector<float> v_data = std::vector<float>(2 * 5 * 2 * 6, 0.5f);
  std::vector<float> o_data = std::vector<float>(2 * 3 * 4 * 6, -7.0f);
  std::vector<float> lse_data = std::vector<float>(2 * 4 * 3, -7.0f);
  std::vector<float> sink_data = std::vector<float>(4, 0.0f);
  std::vector<std::int64_t> starts = {0, 1};
  TensorView q{q_data.data(), {2, 3, 4, 8}};
  TensorView k{k_data.data(), {2, 5, 2, 8}};
  TensorView v{v_data.data(), {2, 5, 2, 6}};
  TensorView o{o_data.data(), {2, 3, 4, 6}};
  Attention options;
  Exec exec;
};

struct Bad {
  const char* name;
  Code code;
  const char* begins;
  std::function<void(Call&)> spoil;
};

const float nan = std::numeric_limits<float>::quiet_NaN();
constexpr Code invalid = Code::invalid_argument;

const std::vector<Bad> bad_calls = {
    {"QNotGiven", invalid, "q: ", [](Call& c) { c.q = {}; }},
    {"QNull", invalid, "q: null", [](Call& c) { c.q.data = nullptr; }},
    {"KNull", invalid, "k: null", [](Call& c) { c.k.data = nullptr; }},
    {"ONull", invalid, "o: null", [](Call& c) { c.o.data = nullptr; }},
    {"QRank3", invalid, "q: ", [](Call& c) { c.q.rank = 3; }},
    {"NegativeSize", invalid, "k: size -5", [](Call& c) { c.k.shape[1] = -5; }},
    {"HugeShape", invalid, "q: ", [](Call& c) { c.q.shape[1] = INT64_MAX / 4; }},
    {"HugeStride", invalid, "v: ", [](Call& c) { c.v.strides[1] = INT64_MIN; }},
    {"QOnGpu", Code::not_supported, "k: lies on the CPU",
     [](Call& c) { c.q.device.kind = Device::Kind::cuda; }},
    {"QInteger", Code::type_error, "q: dtype int32", [](Call& c) { c.q.dtype = DType::int32; }},
    {"MixedDtypes", Code::type_error, "k: dtype float16",
     [](Call& c) { c.k.dtype = DType::float16; }},
    {"OutDtype", Code::type_error, "o: dtype float64; allowed: float32;",
     [](Call& c) { c.o.dtype = DType::float64; }},
    {"BatchDiffers", invalid, "k: ", [](Call& c) { c.k.shape[0] = 1; }},
    {"HeadDimDiffers", invalid, "k: ", [](Call& c) { c.k.shape[3] = 7; }},
    {"HeadDim577", invalid, "q: head dim d = 577",
     [](Call& c) { c.q.shape[3] = c.k.shape[3] = 577; }},
    {"ValueDim577", invalid, "v: head dim d_v = 577",
     [](Call& c) { c.v.shape[3] = c.o.shape[3] = 577; }},
    {"KeysDiffer", invalid, "v: ", [](Call& c) { c.v.shape[1] = 4; }},
    {"OutShape", invalid, "o: ", [](Call& c) { c.o.shape[3] = 5; }},
    {"Heads3Over2", invalid, "k: 2 key/value heads for 3",
     [](Call& c) { c.q.shape[2] = c.o.shape[2] = 3; }},
    {"NoKvHeads", invalid, "k: 0 key/value heads",
     [](Call& c) { c.k.shape[2] = c.v.shape[2] = 0; }},
    {"OutStrideZero", invalid, "o: stride 0", [](Call& c) { c.o.strides[2] = 0; }},
    {"OutIsQ", invalid, "o: overlaps q", [](Call& c) { c.o.data = c.q.data; }},
    {"LseShape", invalid, "lse: ",
     [](Call& c) {
       c.options.lse = {c.lse_data.data(), {2, 3, 4}};
     }},
    {"LseDtype", Code::type_error, "lse: ",
     [](Call& c) {
       c.options.lse = {c.lse_data.data(), DType::bfloat16, {2, 4, 3}};
     }},
    {"SinkShape", invalid, "sink: ",
     [](Call& c) {
       c.options.sink = {c.sink_data.data(), {2}};
     }},
    {"ScaleNan", invalid, "scale: nan", [](Call& c) { c.options.scale = nan; }},
    {"ScaleInfinite", invalid, "scale: inf", [](Call& c) { c.options.scale = INFINITY; }},
    {"ScaleBeyondTwoFloats", invalid, "scale: -7.68932e+75; up to 2^252",
     [](Call& c) { c.options.scale = -0x1.1p252; }},
    {"DropoutNegative", invalid, "dropout: ", [](Call& c) { c.options.dropout.p = -0.1; }},
    {"DropoutOne", invalid, "dropout: ", [](Call& c) { c.options.dropout.p = 1.0; }},
    {"DropoutNan", invalid, "dropout: ", [](Call& c) { c.options.dropout.p = nan; }},
    {"DropoutOrigin", invalid, "dropout: row0", [](Call& c) { c.options.dropout.row0 = 8; }},
    {"DropoutFarOrigin", invalid, "dropout: col0",
     [](Call& c) { c.options.dropout.col0 = INT64_MAX - 15; }},
    {"StartShape", invalid, "q_start: ",
     [](Call& c) { c.options.q_start = TensorView(c.starts.data(), DType::int64, {1}); }},
    {"StartDtype", Code::type_error,
     "k_start: ", [](Call& c) { c.options.k_start = TensorView(c.q_data.data(), {2}); }},
    {"StartFar", invalid, "q_start: ", [](Call& c) { c.options.q_start = std::int64_t{1} << 62; }},
    {"StartFarInArray", invalid, "q_start: ",
     [](Call& c) {
       c.starts[1] = INT64_MIN;
       c.options.q_start = TensorView(c.starts.data(), DType::int64, {2});
     }},
    {"MaskSyntax", invalid, "mask, column 4", [](Call& c) { c.options.mask = "k <"; }},
    {"MaskUnknownName", invalid, "mask, column 6: \"kk\"",
     [](Call& c) { c.options.mask = "q >= kk"; }},
    {"MaskNotBool", invalid, "mask", [](Call& c) { c.options.mask = "q + k"; }},
    {"ScoreIsBool", invalid, "score", [](Call& c) { c.options.score = "q < k"; }},
    {"ArgTwice", invalid, "args: 'n' is given twice",
     [](Call& c) {
       c.options.mask = "k < n";
       c.options.args = {{"n", std::int64_t{3}}, {"n", std::int64_t{4}}};
     }},
    {"ArgUnused", invalid, "args: 'n' is read by neither",
     [](Call& c) {
       c.options.args = {{"n", std::int64_t{3}}};
     }},
    {"ArgUnusedInsideAWord", invalid, "args: 'w' is read by neither",
     [](Call& c) {
       c.options.mask = "window(3, 0)";
       c.options.args = {{"w", std::int64_t{3}}};
     }},
    {"ArgIsOnlyAParameter", invalid, "args: 'n' is read by neither",
     [](Call& c) {
       c.options.mask = "near(3)";
       c.options.definitions = "near(n) = abs(q - k) < n";
       c.options.args = {{"n", std::int64_t{3}}};
     }},
    {"ArgNull", invalid, "ids: null",
     [](Call& c) {
       c.options.mask = "document(ids)";
       c.options.args = {{"ids", TensorView(nullptr, DType::int32, {2, 5})}};
     }},
    {"ArgReserved", invalid, "args: 'k'",
     [](Call& c) {
       c.options.mask = "k < 3";
       c.options.args = {{"k", std::int64_t{3}}};
     }},
    {"ThreadsNegative", invalid, "threads: -1", [](Call& c) { c.exec.threads = -1; }},
    {"ThreadsMany", invalid, "threads: 4097; 0 to 4096", [](Call& c) { c.exec.threads = 4097; }},
    {"WorkspaceSmall", invalid, "workspace: ",
     [](Call& c) {
       alignas(64) static char memory[64];
       c.exec.workspace = memory;
       c.exec.workspace_bytes = 0;
     }},
};

class BadCall : public testing::TestWithParam<Bad> {};

TEST_P(BadCall, IsRefusedBeforeAnyWrite) {
  Call call;
  GetParam().spoil(call);
  try {
    attention(call.q, call.k, call.v, call.o, call.options, call.exec);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, GetParam().code) << error.what();
    EXPECT_EQ(std::string(error.what()).find(GetParam().begins), 0u) << error.what();
  }
  for (float one : call.o_data) EXPECT_EQ(one, -7.0f);
  for (float one : call.lse_data) EXPECT_EQ(one, -7.0f);
}

INSTANTIATE_TEST_SUITE_P(Validate, BadCall, testing::ValuesIn(bad_calls),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Validate, TheSmallCallIsFine) {
  Call call;
  call.options.lse = {call.lse_data.data(), {2, 4, 3}};
  attention(call.q, call.k, call.v, call.o, call.options, call.exec);
  for (float one : call.o_data) EXPECT_NEAR(one, 0.5f, 1e-6f);
}

TEST(Plan, NeedsNoMemory) {
  const TensorView q(nullptr, DType::bfloat16, {2, 4096, 32, 128});
  const TensorView k(nullptr, DType::bfloat16, {2, 4096, 8, 128});
  const Plan p = plan(q, k, k, q, {.mask = "causal"});
  EXPECT_FALSE(p.kernel.empty());
  EXPECT_GT(p.workspace_bytes, 0);
  EXPECT_NE(explain(p).find("yes  " + p.kernel), std::string::npos);
}

TEST(Plan, WorkspaceIsEnough) {
  Call call;
  const Plan p = plan(call.q, call.k, call.v, call.o, call.options, 1);
  std::vector<char> memory(static_cast<std::size_t>(p.workspace_bytes) + 128, 'x');
  char* aligned = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64;
  call.exec = {.threads = 1, .workspace = aligned, .workspace_bytes = p.workspace_bytes};
  attention(call.q, call.k, call.v, call.o, call.options, call.exec);
  for (char* after = aligned + p.workspace_bytes; after < memory.data() + memory.size(); ++after) {
    EXPECT_EQ(*after, 'x');
  }
}

}  // namespace
}  // namespace onepass
