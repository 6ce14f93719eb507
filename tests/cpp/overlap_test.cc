#include "core/overlap.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

namespace onepass {
namespace {

// The addresses of all elements, in floats from the start of the buffer.
std::set<std::int64_t> elements_of(const TensorView& view, const float* buffer) {
  std::set<std::int64_t> out;
  std::array<std::int64_t, 4> at{};
  if (view.elements() == 0) return out;
  for (;;) {
    std::int64_t place = static_cast<const float*>(view.data) - buffer;
    for (int i = 0; i < view.rank; ++i) place += at[i] * view.strides[i];
    out.insert(place);
    int dim = view.rank - 1;
    while (dim >= 0 && ++at[dim] == view.shape[dim]) at[dim--] = 0;
    if (dim < 0) return out;
  }
}

bool share(const std::set<std::int64_t>& a, const std::set<std::int64_t>& b) {
  for (const std::int64_t place : a) {
    if (b.count(place) != 0) return true;
  }
  return false;
}

TEST(Overlap, IsExactForDenseLastDims) {
  std::mt19937 random(7);
  std::vector<float> buffer(4096);
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  const auto view = [&] {
    std::array<std::int64_t, 4> shape{pick(0, 3), pick(1, 3), pick(1, 3), pick(1, 4)};
    if (shape[0] == 0) shape[0] = pick(0, 4);
    std::array<std::int64_t, 4> strides{pick(-60, 60), pick(-20, 20), pick(-9, 9), 1};
    return TensorView(buffer.data() + pick(1000, 1100), DType::float32, shape, strides);
  };
  int shared = 0;
  for (int i = 0; i < 5000; ++i) {
    const TensorView a = view(), b = view();
    const bool expected = share(elements_of(a, buffer.data()), elements_of(b, buffer.data()));
    ASSERT_EQ(overlap(a, b), expected) << a.describe() << " and " << b.describe();
    shared += expected ? 1 : 0;
  }
  EXPECT_GT(shared, 250);
  EXPECT_LT(shared, 4750);
}

TEST(Overlap, IsExactForEqualLargestStrides) {
  std::mt19937 random(11);
  std::vector<float> buffer(4096);
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  int shared = 0;
  for (int i = 0; i < 5000; ++i) {
    const std::int64_t step = pick(20, 60);
    const auto view = [&] {
      const std::array<std::int64_t, 4> shape{pick(1, 6), pick(1, 2), pick(1, 3), pick(1, 4)};
      const std::array<std::int64_t, 4> strides{pick(0, 1) ? step : -step, pick(-12, 12),
                                                pick(-9, 9), 1};
      return TensorView(buffer.data() + pick(1000, 1200), DType::float32, shape, strides);
    };
    const TensorView a = view(), b = view();
    const bool expected = share(elements_of(a, buffer.data()), elements_of(b, buffer.data()));
    ASSERT_EQ(overlap(a, b), expected) << a.describe() << " and " << b.describe();
    shared += expected ? 1 : 0;
  }
  EXPECT_GT(shared, 250);
  EXPECT_LT(shared, 4750);
}

TEST(Overlap, FusedSlicesDoNot) {
  std::vector<float> buffer(5 * 8 * 16);
  const std::array<std::int64_t, 4> shape{1, 5, 4, 16}, strides{640, 128, 16, 1};
  const TensorView first(buffer.data(), DType::float32, shape, strides);
  const TensorView second(buffer.data() + 64, DType::float32, shape, strides);
  const TensorView shifted(buffer.data() + 63, DType::float32, shape, strides);
  EXPECT_FALSE(overlap(first, second));
  EXPECT_TRUE(overlap(first, shifted));
  EXPECT_FALSE(overlap(first, TensorView()));
}

}  // namespace
}  // namespace onepass
