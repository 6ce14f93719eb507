// Random masks, shapes and tiles: a tile called `skip` has no visible pair, a `full` one no hidden
// pair, checked at every pair; and fits_int32 holds at every pair.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <random>

#include "interval_program.h"
#include "lang/interval.h"

namespace onepass::lang::testing {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// One random mask with its arrays and a scope.
class RandomMask {
 public:
  explicit RandomMask(std::uint64_t seed) : random_(seed) {
    const std::int64_t lengths[] = {1, 2, 3, 17, 63, 64, 65, 100, 128, 130, 200};
    scope.s_q = lengths[pick(11)];
    scope.s_kv = lengths[pick(11)];
    scope.b = pick(3);
    scope.h = pick(4);
    scope.h_kv = scope.h / 2;
    scope.q_start = start();
    scope.k_start = start();
    scope.token_q_start = pick(50);
    scope.token_k_start = pick(2) ? scope.token_q_start : pick(50);
    for (int i = 0; i < 3; ++i) arrays_.push_back(build_.array("a" + std::to_string(i), array()));
    mask = build_.finish(boolean(2 + pick(4)));
  }

  Program mask;
  Scope scope;

  int pick(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  std::int64_t between(std::int64_t lo, std::int64_t hi) {  // inclusive
    return lo + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(hi - lo + 1));
  }

 private:
  std::int64_t start() {
    switch (pick(12)) {
      case 0:
        return between(-70, -1);
      case 1:
        return between(1, 300);
      case 2:
        return 3000000000;
      case 3:
        return pick(4) ? 0 : std::numeric_limits<std::int64_t>::max() - 30;
      default:
        return scope.s_kv - scope.s_q;
    }
  }

  std::int64_t integer_value() {
    switch (pick(16)) {
      case 0:
        return 0;
      case 1:
        return -1;
      case 2:
        return between(-200, 200);
      case 3:
        return pick(3) ? 64 : std::numeric_limits<std::int64_t>::min() + pick(2);
      case 4:
        return pick(3) ? 1 : std::numeric_limits<std::int64_t>::max() - pick(2);
      case 5:
        return pick(2) ? 2147483647 : -2147483648LL;
      default:
        return between(1, 40);
    }
  }

  float real_value() {
    switch (pick(14)) {
      case 0:
        return 0.0f;
      case 1:
        return -0.0f;
      case 2:
        return infinity;
      case 3:
        return -infinity;
      case 4:
        return std::nanf("");
      case 5:
        return 1e30f;
      case 6:
        return 1e-38f;
      default:
        return static_cast<float>(between(-400, 400)) / 4.0f;
    }
  }

  /// A view of random type, shape, strides and values over memory kept by this object.
  TensorView array() {
    const DType dtype = static_cast<DType>(pick(8));
    const int rank = pick(5);
    std::int64_t shape[4], strides[4];
    std::int64_t elements = 1;
    for (int dim = 0; dim < rank; ++dim) {
      const std::int64_t sizes[] = {1, scope.s_q, scope.s_kv, 4, between(1, 220), 300};
      shape[dim] = sizes[pick(6)];
      if (pick(40) == 0) shape[dim] = 0;
      if (elements * shape[dim] > 60000) shape[dim] = 1 + pick(3);
      elements *= std::max<std::int64_t>(shape[dim], 1);
    }
    // Any order of the dims in memory, some of them backwards or repeated.
    int order[4] = {0, 1, 2, 3};
    std::shuffle(order, order + rank, random_);
    std::int64_t step = 1;
    std::int64_t first = 0;
    for (int i = 0; i < rank; ++i) {
      const int dim = order[i];
      const int way = pick(10);
      strides[dim] = way == 0 ? 0 : way == 1 ? -step : step;
      if (way == 1) first += step * std::max<std::int64_t>(shape[dim] - 1, 0);
      step *= std::max<std::int64_t>(shape[dim], 1);
    }
    const std::int64_t bytes = size_bytes(dtype);
    memory_.push_back(std::make_unique<char[]>(static_cast<std::size_t>(elements * bytes)));
    char* data = memory_.back().get();
    fill(data, dtype, elements);
    return TensorView(data + first * bytes, dtype,
                      std::span<const std::int64_t>(shape, static_cast<std::size_t>(rank)),
                      std::span<const std::int64_t>(strides, static_cast<std::size_t>(rank)));
  }

  /// Runs of equal values, sorted, shuffled, or all different.
  void fill(char* data, DType dtype, std::int64_t elements) {
    const int manner = pick(4);
    const int run = 1 + pick(90);
    std::int64_t whole = between(-2, 3);
    float real = real_value();
    for (std::int64_t i = 0; i < elements; ++i) {
      if (i % run == 0) {
        whole = manner == 0 ? whole + pick(2) : manner == 1 ? between(-3, 6) : between(-150, 250);
        if (manner == 3 && pick(20) == 0) whole = integer_value();
        real = real_value();
      }
      put(data, dtype, i, whole, real);
    }
  }

  static void put(char* data, DType dtype, std::int64_t i, std::int64_t whole, float real) {
    const auto store = [&](auto value) {
      std::memcpy(data + i * static_cast<std::int64_t>(sizeof(value)), &value, sizeof(value));
    };
    std::uint32_t bits;
    std::memcpy(&bits, &real, 4);
    switch (dtype) {
      case DType::float64:
        return store(static_cast<double>(real) * 1.0000001);
      case DType::float32:
        return store(real);
      case DType::bfloat16:
        return store(static_cast<std::uint16_t>(bits >> 16));
      case DType::float16:
        return store(static_cast<std::uint16_t>(bits >> 13 ^ bits));
      case DType::int64:
        return store(whole);
      case DType::int32:
        return store(static_cast<std::int32_t>(whole));
      case DType::uint8:
        return store(static_cast<std::uint8_t>(whole));
      case DType::boolean:
        return store(static_cast<std::uint8_t>(whole & 1));
    }
  }

  int load(Type type, int depth) {
    for (int tries = 0; tries < 4; ++tries) {
      const int array = arrays_[pick(3)];
      std::vector<int> index;
      for (int dim = 0; dim < build_.rank(array); ++dim) index.push_back(place(depth - 1));
      const int node = build_.load(array, index);
      if (build_.type(node) == type) return node;
      if (type == Type::real && build_.type(node) == Type::integer) {
        return build_.unary(Op::to_real, node);
      }
    }
    return -1;
  }

  /// An index: mostly a plain name.
  int place(int depth) {
    const Name names[] = {Name::q, Name::k,    Name::row,     Name::col,
                          Name::b, Name::h_kv, Name::token_q, Name::token_k};
    if (pick(8) != 0 || depth <= 0) return build_.name(names[pick(8)]);
    return integer(depth);
  }

  int integer(int depth) {
    const Name names[] = {Name::q,    Name::k,       Name::q,      Name::k,    Name::row,
                          Name::col,  Name::b,       Name::h,      Name::h_kv, Name::s_q,
                          Name::s_kv, Name::token_q, Name::token_k};
    const int way = depth <= 0 ? pick(4) : pick(18);
    if (way < 3) return build_.name(names[pick(13)]);
    if (way == 3) {
      return pick(2) ? build_.integer(integer_value()) : build_.parameter(integer_value());
    }
    if (way == 4) return build_.unary(Op::negate, integer(depth - 1));
    if (way == 5) return build_.unary(Op::absolute, integer(depth - 1));
    if (way == 6) {
      return build_.select(boolean(depth - 1), integer(depth - 1), integer(depth - 1));
    }
    if (way < 10) {
      const int node = load(Type::integer, depth);
      if (node >= 0) return node;
    }
    const Op ops[] = {Op::add,          Op::subtract, Op::subtract, Op::multiply,
                      Op::floor_divide, Op::modulo,   Op::minimum,  Op::maximum};
    const int a = integer(depth - 1);
    return build_.binary(ops[pick(8)], a, integer(depth - 1));
  }

  int real(int depth) {
    const int way = depth <= 0 ? pick(3) : pick(16);
    if (way < 2) return build_.unary(Op::to_real, integer(depth - 1));
    if (way == 2) {
      return pick(2) ? build_.real(real_value()) : build_.real_parameter(real_value());
    }
    if (way == 3) return build_.unary(Op::negate, real(depth - 1));
    if (way == 4) return build_.unary(Op::absolute, real(depth - 1));
    if (way == 5) return build_.unary(Op::floor, real(depth - 1));
    if (way == 6) return build_.select(boolean(depth - 1), real(depth - 1), real(depth - 1));
    if (way < 9) {
      const int node = load(Type::real, depth);
      if (node >= 0) return node;
    }
    const Op ops[] = {Op::add,          Op::subtract, Op::multiply, Op::divide,
                      Op::floor_divide, Op::modulo,   Op::minimum,  Op::maximum};
    const int a = real(depth - 1);
    return build_.binary(ops[pick(8)], a, real(depth - 1));
  }

  int boolean(int depth) {
    const int way = depth <= 0 ? pick(3) : pick(20);
    if (way == 0 && pick(3) == 0) return pick(2) ? build_.truth(pick(2)) : build_.flag(pick(2));
    if (way == 1) {
      const int node = load(Type::boolean, depth);
      if (node >= 0) return node;
    }
    if (way < 3 || (way >= 8 && way < 13)) {
      const int a = integer(depth - 1);
      return build_.binary(comparison(), a, integer(depth - 1));
    }
    if (way == 3) return build_.unary(Op::logical_not, boolean(depth - 1));
    if (way == 4) {
      return build_.select(boolean(depth - 1), boolean(depth - 1), boolean(depth - 1));
    }
    if (way < 7) {
      const int a = real(depth - 1);
      return build_.binary(comparison(), a, real(depth - 1));
    }
    if (way == 7) {  // the same array on both sides
      const int array = arrays_[pick(3)];
      std::vector<int> query, key;
      for (int dim = 0; dim < build_.rank(array); ++dim) {
        const bool last = dim + 1 == build_.rank(array);
        query.push_back(build_.name(last ? Name::q : Name::b));
        key.push_back(build_.name(last ? Name::k : Name::b));
      }
      const int a = build_.load(array, query);
      const int b = build_.load(array, key);
      if (build_.type(a) != Type::boolean) return build_.binary(comparison(), a, b);
      return build_.binary(Op::equal, a, b);
    }
    const int a = boolean(depth - 1);
    return build_.binary(pick(2) ? Op::logical_and : Op::logical_or, a, boolean(depth - 1));
  }

  Op comparison() {
    const Op ops[] = {Op::less, Op::less_equal, Op::equal, Op::not_equal};
    return ops[pick(4)];
  }

  std::mt19937_64 random_;
  ProgramBuilder build_;
  std::vector<int> arrays_;
  std::vector<std::unique_ptr<char[]>> memory_;
};

/// ONEPASS_TEST_SEED=n repeats one mask.
TEST(IntervalRandom, NeverWrongAboutATile) {
  const char* const only = std::getenv("ONEPASS_TEST_SEED");
  const std::uint64_t first = only != nullptr ? std::strtoull(only, nullptr, 10) : 1000000;
  const std::uint64_t count = only != nullptr ? 1 : 4000;
  std::int64_t uniform = 0, decided = 0, tiles = 0, fitting = 0, proved = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    RandomMask random(seed);
    const Program& mask = random.mask;
    const Scope& scope = random.scope;
    const std::string line = "ONEPASS_TEST_SEED=" + std::to_string(seed) + " " + describe(scope) +
                             " mask=" + describe(mask);
    const VisibleCounts counts(mask, scope);

    const bool proof = fits_int32(mask, scope);
    EXPECT_TRUE(!proof || counts.integers_fit()) << line;
    fitting += counts.integers_fit();
    proved += proof;

    const MaskReader reader(mask, scope);
    const Classifier& classifier = reader.classifier;
    const auto check = [&](TileRange t) {
      const TileKind kind = classifier.classify(t);
      const std::int64_t row_end = std::min(t.row_end, scope.s_q);
      const std::int64_t col_end = std::min(t.col_end, scope.s_kv);
      const std::int64_t pairs = (row_end - t.row_begin) * (col_end - t.col_begin);
      const std::int64_t seen = counts.count(t.row_begin, row_end, t.col_begin, col_end);
      EXPECT_FALSE(kind == TileKind::skip && seen > 0)
          << line << " rows " << t.row_begin << ":" << t.row_end << " cols " << t.col_begin << ":"
          << t.col_end << " is called skip and has " << seen << " visible pairs";
      EXPECT_FALSE(kind == TileKind::full && seen < pairs)
          << line << " rows " << t.row_begin << ":" << t.row_end << " cols " << t.col_begin << ":"
          << t.col_end << " is called full and has " << pairs - seen << " hidden pairs";
      ++tiles;
      uniform += seen == 0 || seen == pairs;
      decided += kind != TileKind::partial;
    };
    for (std::int64_t row = 0; row < scope.s_q; row += 64) {
      for (std::int64_t col = 0; col < scope.s_kv; col += 64) check({row, row + 64, col, col + 64});
    }
    for (int i = 0; i < 40; ++i) {
      const std::int64_t row = random.between(0, scope.s_q - 1);
      const std::int64_t col = random.between(0, scope.s_kv - 1);
      const std::int64_t rows = i % 2 ? 6 : random.between(1, scope.s_q - row);
      const std::int64_t cols = i % 4 == 1 ? 64 : random.between(1, scope.s_kv - col);
      check({row, row + rows, col, col + cols});
    }
    if (::testing::Test::HasFailure()) break;
  }
  std::printf(
      "%lld tiles, %lld of one kind, %lld of them decided; %lld masks fit int32, %lld proved\n",
      static_cast<long long>(tiles), static_cast<long long>(uniform),
      static_cast<long long>(decided), static_cast<long long>(fitting),
      static_cast<long long>(proved));
  if (only == nullptr) {
    EXPECT_GT(decided, uniform * 8 / 10);  // the answers are not all `partial`
    EXPECT_GT(proved, fitting * 5 / 10);
  }
}

}  // namespace
}  // namespace onepass::lang::testing
