// The teaching versions: right against float64, and their counted work equal to the papers'
// formulas.
#include "reference/teaching.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "reference/attention.h"

namespace onepass::reference {
namespace {

struct Data {
  std::vector<float> q, k, v;
};

Data random_data(const Lesson& l, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  Data data{std::vector<float>(l.heads * l.s_q * l.d), std::vector<float>(l.heads * l.s_kv * l.d),
            std::vector<float>(l.heads * l.s_kv * l.d_v)};
  for (auto* part : {&data.q, &data.k, &data.v}) {
    for (float& one : *part) one = normal(engine);
  }
  return data;
}

// The reference takes (b, s, h, d); with one head per batch entry that is (heads, s, 1, d).
Tensor tensor(const Lesson& l, std::int64_t s, std::int64_t d, const std::vector<float>& data) {
  return {{l.heads, s, 1, d}, std::vector<double>(data.begin(), data.end())};
}

double largest_error(const Lesson& l, const Data& data, const std::vector<float>& o) {
  Options options;
  options.mask = l.causal ? "causal" : "full";
  options.scale = l.scale;
  const Result right = attention(tensor(l, l.s_q, l.d, data.q), tensor(l, l.s_kv, l.d, data.k),
                                 tensor(l, l.s_kv, l.d_v, data.v), options);
  double worst = 0.0;
  for (std::size_t i = 0; i < o.size(); ++i) {
    const double error = std::abs(o[i] - right.o.data[i]);
    worst = error <= worst ? worst : error;  // a NaN sticks
  }
  return worst;
}

const std::vector<Lesson> lessons = {
    {.heads = 1, .s_q = 64, .s_kv = 64, .d = 16, .d_v = 16, .block_q = 16, .block_k = 16},
    {.heads = 3,
     .s_q = 37,
     .s_kv = 37,
     .d = 8,
     .d_v = 8,
     .block_q = 16,
     .block_k = 8,
     .scale = 0.3f},
    {.heads = 2,
     .s_q = 37,
     .s_kv = 37,
     .d = 8,
     .d_v = 8,
     .block_q = 8,
     .block_k = 16,
     .scale = 0.35f,
     .causal = true},
    {.heads = 2,
     .s_q = 19,
     .s_kv = 50,
     .d = 5,
     .d_v = 7,
     .block_q = 7,
     .block_k = 9,
     .scale = 0.4f,
     .causal = true},
    {.heads = 2,
     .s_q = 50,
     .s_kv = 19,
     .d = 5,
     .d_v = 3,
     .block_q = 7,
     .block_k = 9,
     .scale = -0.4f,
     .causal = true},
    {.heads = 1, .s_q = 1, .s_kv = 33, .d = 4, .d_v = 4, .block_q = 64, .block_k = 64},
    {.heads = 1, .s_q = 40, .s_kv = 3, .d = 4, .d_v = 4, .block_q = 1, .block_k = 1, .scale = 2.0f},
};

using Algorithm = Lecture (*)(const Lesson&, const float*, const float*, const float*);
using Formula = Work (*)(const Lesson&);
struct Version {
  const char* name;
  Algorithm run;
  Formula predict;
};
const Version versions[] = {{"standard", standard_attention, predict_standard},
                            {"flash v1", flash_v1, predict_flash_v1},
                            {"flash v2", flash_v2, predict_flash_v2}};

TEST(Teaching, EveryVersionIsRightAndDoesThePredictedWork) {
  unsigned seed = 1;
  for (const Lesson& lesson : lessons) {
    const Data data = random_data(lesson, seed++);
    for (const Version& version : versions) {
      SCOPED_TRACE(std::string(version.name) + " s_q " + std::to_string(lesson.s_q));
      const Lecture got = version.run(lesson, data.q.data(), data.k.data(), data.v.data());
      EXPECT_LT(largest_error(lesson, data, got.o), 1e-5);
      const Work want = version.predict(lesson);
      EXPECT_EQ(got.work.bytes_read, want.bytes_read);
      EXPECT_EQ(got.work.bytes_written, want.bytes_written);
      EXPECT_EQ(got.work.exponentials, want.exponentials);
      EXPECT_EQ(got.work.rescalings, want.rescalings);
      EXPECT_EQ(got.work.extra_bytes, want.extra_bytes);
    }
  }
}

TEST(Teaching, LoopsRunInThePapersOrder) {
  const Lesson lesson{.s_q = 32, .s_kv = 48, .d = 4, .d_v = 4, .block_q = 16, .block_k = 16};
  const Data data = random_data(lesson, 1);
  const auto v1 = flash_v1(lesson, data.q.data(), data.k.data(), data.v.data()).order;
  const auto v2 = flash_v2(lesson, data.q.data(), data.k.data(), data.v.data()).order;
  ASSERT_EQ(v1.size(), 6u);
  ASSERT_EQ(v2.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(v1[i].k_block, static_cast<std::int64_t>(i / 2));  // keys outside
    EXPECT_EQ(v2[i].q_block, static_cast<std::int64_t>(i / 3));  // queries outside
  }
}

std::int64_t moved(const Work& work) { return work.bytes_read + work.bytes_written; }

Lesson with_memory(std::int64_t s, std::int64_t d, std::int64_t memory_floats) {
  const std::int64_t block = memory_floats / (4 * d);  // the papers' block size M / 4d
  return {.s_q = s, .s_kv = s, .d = d, .d_v = d, .block_q = block, .block_k = block};
}

TEST(Teaching, TrafficGrowsAsThePapersSay) {
  const std::int64_t d = 64, s = 1 << 14, memory = 1 << 16;
  const auto ratio = [](const Work& a, const Work& b) {
    return static_cast<double>(moved(a)) / static_cast<double>(moved(b));
  };
  for (const Formula flash : {predict_flash_v1, predict_flash_v2}) {
    // O(s^2 d^2 / M): twice the length four times, twice the fast memory half, twice d four times.
    EXPECT_NEAR(ratio(flash(with_memory(2 * s, d, memory)), flash(with_memory(s, d, memory))), 4.0,
                0.1);
    EXPECT_NEAR(ratio(flash(with_memory(s, d, 2 * memory)), flash(with_memory(s, d, memory))), 0.5,
                0.02);
    EXPECT_NEAR(ratio(flash(with_memory(s, 2 * d, memory)), flash(with_memory(s, d, memory))), 4.0,
                0.1);
  }
  // O(s d + s^2): within a constant of it at every length and memory.
  for (std::int64_t length : {s / 16, s / 4, s}) {
    for (std::int64_t size : {memory, 4 * memory}) {
      const Work work = predict_standard(with_memory(length, d, size));
      const double order = 4.0 * static_cast<double>(length * d + length * length);
      EXPECT_GT(static_cast<double>(moved(work)) / order, 2.0);
      EXPECT_LT(static_cast<double>(moved(work)) / order, 6.0);
    }
  }
}

TEST(Teaching, V2RescalesHalfAsOften) {
  // Full attention: v1 rescales two vectors at each of T steps, v2 one at each step but the first
  // and divides once: 2 T / (T - 1 + 1).
  const Lesson lesson = with_memory(1024, 64, 1 << 14);
  EXPECT_EQ(predict_flash_v1(lesson).rescalings, 2 * predict_flash_v2(lesson).rescalings);
}

}  // namespace
}  // namespace onepass::reference
