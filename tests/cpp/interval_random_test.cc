// Random masks, shapes and tiles: a tile called `skip` has no visible pair, a `full` one no hidden
// pair, checked at every pair; and what fits_int32 proves holds at every pair.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <random>

#include "mask_reader.h"

namespace onepass::lang {
namespace {

using Limits = std::numeric_limits<std::int64_t>;

/// One random mask, as text, with its arguments and a scope.
class RandomMask {
 public:
  explicit RandomMask(std::uint64_t seed) : random_(seed) {
    const std::vector<std::int64_t> lengths = {1, 2, 3, 17, 63, 64, 65, 100, 128, 130, 200};
    scope.s_q = one_of(lengths);
    scope.s_kv = one_of(lengths);
    scope.b = pick(3);
    scope.h = pick(4);
    scope.h_kv = scope.h / 2;
    scope.q_start = start();
    scope.k_start = start();
    scope.token_q_start = pick(50);
    scope.token_k_start = pick(2) ? scope.token_q_start : pick(50);
    for (int i = 0; i < 3; ++i) arguments.push_back({"a" + std::to_string(i), array()});
    for (int i = 0; i < 2; ++i) {
      arguments.push_back({"n" + std::to_string(i), whole_value()});
      arguments.push_back({"x" + std::to_string(i), static_cast<double>(real_value())});
    }
    arguments.push_back({"flag", pick(2) == 1});
    text = boolean(2 + pick(4));
  }

  Scope scope;
  std::vector<Argument> arguments;
  std::string text;

  int pick(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  std::int64_t between(std::int64_t lo, std::int64_t hi) {  // inclusive
    return lo + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(hi - lo + 1));
  }

 private:
  template <class T>
  T one_of(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(pick(static_cast<int>(list.size())))];
  }
  std::string one_of(std::initializer_list<const char*> list) {
    return one_of(std::vector<std::string>(list.begin(), list.end()));
  }

  std::int64_t start() {
    switch (pick(12)) {
      case 0:
        return between(-70, -1);
      case 1:
        return between(1, 300);
      case 2:
        return 3000000000;
      case 3:
        return pick(4) != 0 ? 0 : Limits::max() - 30;
      default:
        return scope.s_kv - scope.s_q;
    }
  }

  std::int64_t whole_value() {
    switch (pick(16)) {
      case 0:
        return 0;
      case 1:
        return -1;
      case 2:
        return between(-200, 200);
      case 3:
        return pick(3) != 0 ? 64 : Limits::min() + pick(2);
      case 4:
        return pick(3) != 0 ? 1 : Limits::max() - pick(2);
      case 5:
        return pick(2) != 0 ? 2147483647 : -2147483648LL;
      case 6:
        return (std::int64_t{1} << between(40, 62)) - pick(2);
      default:
        return between(1, 40);
    }
  }

  float real_value() {
    const float odd[] = {0.0f, -0.0f, HUGE_VALF, -HUGE_VALF, std::nanf(""), 1e30f, 1e-38f};
    if (pick(2) == 0) return odd[pick(7)];
    return static_cast<float>(between(-400, 400)) / 4.0f;
  }

  /// A view of random type, shape, strides and values over memory kept by this object: dims in any
  /// order in memory, some of them backwards or repeated.
  TensorView array() {
    const DType dtype = static_cast<DType>(pick(8));
    const int rank = pick(5);
    std::int64_t shape[4], strides[4];
    std::int64_t elements = 1;
    for (int dim = 0; dim < rank; ++dim) {
      shape[dim] = one_of<std::int64_t>({1, scope.s_q, scope.s_kv, 4, between(1, 220), 300});
      if (pick(40) == 0) shape[dim] = 0;
      if (elements * shape[dim] > 60000) shape[dim] = 1 + pick(3);
      elements *= std::max<std::int64_t>(shape[dim], 1);
    }
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
    const auto dims = static_cast<std::size_t>(rank);
    return TensorView(data + first * bytes, dtype, std::span<const std::int64_t>(shape, dims),
                      std::span<const std::int64_t>(strides, dims));
  }

  /// Runs of equal values: rising, few different ones, many, or anything.
  void fill(char* data, DType dtype, std::int64_t elements) {
    const int manner = pick(4);
    const int run = 1 + pick(90);
    std::int64_t whole = between(-2, 3);
    float real = real_value();
    for (std::int64_t i = 0; i < elements; ++i) {
      if (i % run == 0) {
        whole = manner == 0 ? whole + pick(2) : manner == 1 ? between(-3, 6) : between(-150, 250);
        if (manner == 3 && pick(20) == 0) whole = whole_value();
        real = real_value();
      }
      put(data, dtype, i, whole, real);
    }
  }

  static void put(char* data, DType dtype, std::int64_t i, std::int64_t whole, float real) {
    const auto store = [&](auto value) {
      std::memcpy(data + i * static_cast<std::int64_t>(sizeof value), &value, sizeof value);
    };
    std::uint32_t bits;
    std::memcpy(&bits, &real, sizeof bits);
    switch (dtype) {
      case DType::float64:
        return store(static_cast<double>(real) * 1.00000001);
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

  /// A read of an array whose elements have this type, or "" where none was found.
  std::string load(Type type, int depth) {
    for (int tries = 0; tries < 4; ++tries) {
      const Argument& argument = arguments[static_cast<std::size_t>(pick(3))];
      const TensorView& view = std::get<TensorView>(argument.value);
      const Type element = is_float(view.dtype)           ? Type::real
                           : view.dtype == DType::boolean ? Type::boolean
                                                          : Type::integer;
      if (element != type && !(type == Type::real && element == Type::integer)) continue;
      return read(argument, [&](int) { return place(depth - 1); });
    }
    return "";
  }

  template <class F>
  static std::string read(const Argument& argument, F index) {
    const int rank = std::get<TensorView>(argument.value).rank;
    if (rank == 0) return argument.name;
    std::string out = argument.name + "[";
    for (int dim = 0; dim < rank; ++dim) out += std::string(dim > 0 ? ", " : "") + index(dim);
    return out + "]";
  }

  /// An index: mostly a plain name.
  std::string place(int depth) {
    if (pick(8) == 0 && depth > 0) return integer(depth);
    return one_of({"q", "k", "row", "col", "b", "h_kv", "token_q", "token_k"});
  }

  std::string pair(const std::string& a, const std::string& op, const std::string& b) {
    return "(" + a + " " + op + " " + b + ")";
  }

  std::string integer(int depth) {
    const int way = depth <= 0 ? pick(5) : pick(18);
    if (way < 3) {
      return one_of({"q", "k", "q", "k", "row", "col", "b", "h", "h_kv", "s_q", "s_kv", "token_q",
                     "token_k"});
    }
    if (way == 3) return std::to_string(pick(3) ? between(1, 40) : between(0, 70000));
    if (way == 4) return one_of({"n0", "n1"});
    if (way == 5) return one_of({"-", "abs"}) + "(" + integer(depth - 1) + ")";
    if (way == 6) {
      return "where(" + boolean(depth - 1) + ", " + integer(depth - 1) + ", " + integer(depth - 1) +
             ")";
    }
    if (way < 10) {
      const std::string found = load(Type::integer, depth);
      if (!found.empty()) return found;
    }
    if (way < 12) {
      return one_of({"min", "max"}) + "(" + integer(depth - 1) + ", " + integer(depth - 1) + ")";
    }
    if (way < 15) {
      const std::string divisor = pick(2) ? integer(0) : std::to_string(between(1, 70));
      return pair(integer(depth - 1), one_of({"//", "%"}),
                  divisor == "0" ? "3" : divisor);  // a literal divisor is not 0
    }
    return pair(integer(depth - 1), one_of({"+", "-", "-", "*"}), integer(depth - 1));
  }

  std::string real(int depth) {
    const int way = depth <= 0 ? pick(3) : pick(16);
    if (way < 2) return "(" + integer(depth - 1) + " * 1.0)";
    if (way == 2) return one_of({"x0", "x1", "0.25", "0.1", "17.5", "1e30", "inf"});
    if (way < 6) return one_of({"-", "abs", "floor"}) + "(" + real(depth - 1) + ")";
    if (way == 6) {
      return "where(" + boolean(depth - 1) + ", " + real(depth - 1) + ", " + real(depth - 1) + ")";
    }
    if (way < 9) {
      const std::string found = load(Type::real, depth);
      if (!found.empty()) return "(" + found + " + 0.0)";
    }
    if (way < 11) {
      return one_of({"min", "max"}) + "(" + real(depth - 1) + ", " + real(depth - 1) + ")";
    }
    return pair(real(depth - 1), one_of({"+", "-", "*", "/", "//", "%"}), real(depth - 1));
  }

  std::string boolean(int depth) {
    const int way = depth <= 0 ? pick(4) : pick(22);
    if (way == 0 && pick(4) == 0) return one_of({"true", "false", "flag"});
    if (way == 1) {
      const std::string found = load(Type::boolean, depth);
      if (!found.empty()) return found;
    }
    if (way < 4 || (way >= 9 && way < 13)) {
      return pair(integer(depth - 1), comparison(), integer(depth - 1));
    }
    if (way == 4) return "!(" + boolean(depth - 1) + ")";
    if (way == 5) {
      return "(" + boolean(depth - 1) + " ? " + boolean(depth - 1) + " : " + boolean(depth - 1) +
             ")";
    }
    if (way < 8) return pair(real(depth - 1), comparison(), real(depth - 1));
    if (way == 8) {  // the same array on both sides
      const Argument& argument = arguments[static_cast<std::size_t>(pick(3))];
      const TensorView& view = std::get<TensorView>(argument.value);
      const auto side = [&](const char* name) {
        return read(argument, [&](int dim) { return dim + 1 == view.rank ? name : "b"; });
      };
      if (view.dtype == DType::boolean) return pair(side("q"), "&", side("k"));
      return pair(side("q"), comparison(), side("k"));
    }
    if (way < 15) {
      return one_of({"causal", "window(n0, n1)", "window(9, 5)", "chunked(17)", "(k < n0)",
                     "sliding_window_causal(n0)", "prefix(20)", "sink_window(4, 30)",
                     "(abs(q - k) < 12)"});
    }
    return pair(boolean(depth - 1), one_of({"&", "|"}), boolean(depth - 1));
  }

  std::string comparison() { return one_of({"<", "<=", "==", "!=", ">", ">="}); }

  std::mt19937_64 random_;
  std::vector<std::unique_ptr<char[]>> memory_;
};

struct Tally {
  std::int64_t masks = 0, refused = 0, fitting = 0, proved = 0;
  std::int64_t mixed = 0;                 // masks neither all visible nor all hidden
  std::int64_t uniform = 0, decided = 0;  // tiles of these
};

void check(std::uint64_t seed, Tally& tally) {
  RandomMask random(seed);
  const Scope& scope = random.scope;
  std::string line = "ONEPASS_TEST_SEED=" + std::to_string(seed) + " " + line_of(scope);
  for (const Argument& argument : random.arguments) {
    const auto* view = std::get_if<TensorView>(&argument.value);
    if (view != nullptr) line += " " + argument.name + "=" + view->describe();
  }
  line += " mask=" + random.text;

  ++tally.masks;
  const Result<Program> compiled = compile(random.text, Kind::mask, random.arguments);
  if (!compiled.ok()) {  // a constant divisor that folded to 0
    EXPECT_NE(compiled.status().message.find("divi"), std::string::npos)
        << line << "\n"
        << compiled.status().message;
    ++tally.refused;
    return;
  }
  const Program& mask = compiled.value();
  const VisibleCounts truth(mask, scope);
  const bool proved = fits_int32(mask, scope);
  EXPECT_FALSE(proved && !truth.only_int32()) << line << ": fits_int32 is wrong";
  tally.fitting += truth.only_int32();
  tally.proved += proved;

  const bool mixed = truth.kind({0, scope.s_q, 0, scope.s_kv}) == TileKind::partial;
  tally.mixed += mixed;
  const MaskReader reader(mask, scope);
  const auto check_tile = [&](const TileRange& tile) {
    const TileKind kind = reader.classifier.classify(tile);
    const TileKind right = truth.kind(tile);
    EXPECT_TRUE(kind == right || kind == TileKind::partial)
        << line << "\n"
        << line_of(tile) << " is called " << name(kind) << "; " << truth.in(tile) << " of "
        << truth.pairs(tile) << " pairs are visible";
    if (!mixed) return;
    tally.uniform += right != TileKind::partial;
    tally.decided += kind != TileKind::partial;
  };
  for (std::int64_t row = 0; row < scope.s_q; row += 64) {
    for (std::int64_t col = 0; col < scope.s_kv; col += 64) {
      check_tile({row, row + 64, col, col + 64});
    }
  }
  for (int i = 0; i < 40; ++i) {
    const std::int64_t row = random.between(0, scope.s_q - 1);
    const std::int64_t col = random.between(0, scope.s_kv - 1);
    const std::int64_t rows = i % 2 == 1 ? 6 : random.between(1, scope.s_q - row);
    const std::int64_t cols = i % 4 == 1 ? 64 : random.between(1, scope.s_kv - col);
    check_tile({row, row + rows, col, col + cols});
  }
}

/// ONEPASS_TEST_SEED=n repeats one mask, ONEPASS_TEST_MASKS=n tries more of them.
TEST(IntervalRandom, NeverWrongAboutATile) {
  const char* const seed = std::getenv("ONEPASS_TEST_SEED");
  const char* const masks = std::getenv("ONEPASS_TEST_MASKS");
  const std::uint64_t first = seed != nullptr ? std::strtoull(seed, nullptr, 10) : 1;
  std::uint64_t count = masks != nullptr ? std::strtoull(masks, nullptr, 10) : 4000;
  if (seed != nullptr) count = 1;
  Tally tally;
  for (std::uint64_t i = first; i < first + count && !HasFailure(); ++i) check(i, tally);
  std::printf(
      "seeds %llu.. : %lld masks, %lld refused, %lld mixed; of their uniform tiles %.2f %% "
      "decided; %lld fit int32, %lld proved\n",
      static_cast<unsigned long long>(first), static_cast<long long>(tally.masks),
      static_cast<long long>(tally.refused), static_cast<long long>(tally.mixed),
      100.0 * static_cast<double>(tally.decided) /
          static_cast<double>(std::max<std::int64_t>(tally.uniform, 1)),
      static_cast<long long>(tally.fitting), static_cast<long long>(tally.proved));
  if (seed != nullptr) return;
  EXPECT_LT(tally.refused * 10, tally.masks);
  EXPECT_GT(tally.decided * 100, tally.uniform * 70);  // the answers are not all `partial`
  EXPECT_GT(tally.proved * 100, tally.fitting * 70);
}

TEST(IntervalRandom, NeverWrongWhereIntegersWrap) {
  std::int64_t wrapped = 0;
  for (const char* text : {"q * n > k", "q * n > k * n", "q * n - k * n > 0", "n + k > q",
                           "q - n <= k - n", "abs(k - n) > q + n", "k * n // 3 == q", "-q - n < k",
                           "min(q * n, k) < max(k * n, q)", "q * n % 5 == k * n % 5"}) {
    for (int power = 40; power <= 64; ++power) {
      for (std::int64_t add = -1; add <= 1; ++add) {
        const auto n = static_cast<std::int64_t>((power == 64 ? 0u : std::uint64_t{1} << power) +
                                                 static_cast<std::uint64_t>(add));
        const Result<Program> mask = compile(text, Kind::mask, std::vector<Argument>{{"n", n}});
        ASSERT_TRUE(mask.ok()) << mask.status().message;
        Scope scope;
        scope.s_q = 20;
        scope.s_kv = 24;
        scope.q_start = power % 2 == 0 ? 4 : Limits::max() - 7;
        const VisibleCounts truth(mask.value(), scope);
        wrapped += !truth.only_int32();
        EXPECT_FALSE(fits_int32(mask.value(), scope) && !truth.only_int32()) << text << " n " << n;
        const MaskReader reader(mask.value(), scope);
        for (std::int64_t row = 0; row < 20; row += 5) {
          for (std::int64_t col = 0; col < 24; col += 4) {
            for (const TileRange& tile :
                 {TileRange{row, row + 5, col, col + 4}, TileRange{row, row + 1, col, 24},
                  TileRange{0, 20, 0, 24}}) {
              const TileKind kind = reader.classifier.classify(tile);
              EXPECT_TRUE(kind == TileKind::partial || kind == truth.kind(tile))
                  << text << " n " << n << " " << line_of(scope) << " " << line_of(tile)
                  << " is called " << name(kind);
            }
          }
        }
      }
    }
  }
  EXPECT_GT(wrapped, 300);
}

}  // namespace
}  // namespace onepass::lang
