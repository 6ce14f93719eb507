// Documents whose ids are in no order: every tile without a visible pair is skipped all the same,
// since blocks of 64 keep the values that occur in them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <random>

#include "mask_reader.h"

namespace onepass::lang {
namespace {

struct Packing {
  const char* name;
  int shortest, longest;  // tokens of a document
  bool shuffled;          // ids in random order
  bool wide;              // ids are random int64 values
  int padding;            // every so many tokens a padding run of the id -1; 0 = only at the end
};

void PrintTo(const Packing& packing, std::ostream* out) { *out << packing.name; }

class IntervalDocuments : public testing::TestWithParam<Packing> {
 protected:
  std::vector<std::int64_t> ids(std::int64_t count) {
    const Packing& packing = GetParam();
    std::mt19937_64 random(99);
    const auto between = [&](int lo, int hi) {
      return std::uniform_int_distribution<int>(lo, hi)(random);
    };
    std::vector<std::int64_t> names(static_cast<std::size_t>(count));
    std::iota(names.begin(), names.end(), 0);
    if (packing.shuffled) std::shuffle(names.begin(), names.end(), random);
    if (packing.wide) {
      for (std::int64_t& name : names) name = static_cast<std::int64_t>(random() >> 1);
    }
    std::vector<std::int64_t> ids;
    std::size_t document = 0;
    std::int64_t since = 0;
    while (static_cast<std::int64_t>(ids.size()) < count * 9 / 10) {
      const int length = between(packing.shortest, packing.longest);
      ids.insert(ids.end(), static_cast<std::size_t>(length), names[document++]);
      since += length;
      if (packing.padding > 0 && since >= packing.padding) {
        ids.insert(ids.end(), static_cast<std::size_t>(between(1, 100)), -1);
        since = 0;
      }
    }
    ids.resize(static_cast<std::size_t>(count), -1);
    return ids;
  }
};

bool share(const std::vector<std::int64_t>& ids, const TileRange& tile) {
  const auto values = [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::int64_t> found(ids.begin() + begin, ids.begin() + end);
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  };
  const std::vector<std::int64_t> a = values(tile.row_begin, tile.row_end);
  const std::vector<std::int64_t> b = values(tile.col_begin, tile.col_end);
  std::vector<std::int64_t> common;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(common));
  return !common.empty();
}

TEST_P(IntervalDocuments, EverySkippableTileIsSkipped) {
  const std::int64_t s = 8192;
  const std::vector<std::int64_t> ids = this->ids(s);
  const std::vector<Argument> arguments = {{"ids", TensorView(ids.data(), DType::int64, {1, s})}};
  const Result<Program> mask = compile("document(ids)", Kind::mask, arguments);
  ASSERT_TRUE(mask.ok()) << mask.status().message;
  Scope scope;
  scope.s_q = scope.s_kv = s;
  const MaskReader reader(mask.value(), scope);
  const std::pair<std::int64_t, std::int64_t> sizes[] = {{64, 64}, {192, 256}, {100, 200}};
  for (const auto& [rows, keys] : sizes) {
    std::int64_t skippable = 0, missed = 0;
    for (std::int64_t row = 0; row < s; row += rows) {
      for (std::int64_t col = 0; col < s; col += keys) {
        const TileRange tile = {row, std::min(row + rows, s), col, std::min(col + keys, s)};
        const TileKind kind = reader.classifier.classify(tile);
        if (share(ids, tile)) {
          EXPECT_NE(kind, TileKind::skip) << line_of(tile);
          continue;
        }
        ++skippable;
        missed += kind != TileKind::skip;
      }
    }
    std::printf("%s %lldx%lld: %lld of %lld skippable tiles missed, %.2f %%\n", GetParam().name,
                static_cast<long long>(rows), static_cast<long long>(keys),
                static_cast<long long>(missed), static_cast<long long>(skippable),
                100.0 * static_cast<double>(missed) / static_cast<double>(skippable));
    EXPECT_GT(skippable, 100);
    EXPECT_EQ(missed, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Packings, IntervalDocuments,
                         testing::Values(Packing{"shuffled", 20, 600, true, false, 0},
                                         Packing{"shuffled_short", 8, 60, true, false, 0},
                                         Packing{"shuffled_tiny", 2, 12, true, false, 0},
                                         Packing{"hashes", 20, 600, true, true, 0},
                                         Packing{"hashes_short", 8, 60, true, true, 0},
                                         Packing{"padded", 20, 600, false, false, 1000},
                                         Packing{"padded_short", 8, 60, false, false, 300},
                                         Packing{"shuffled_padded", 8, 100, true, false, 500}),
                         [](const testing::TestParamInfo<Packing>& info) {
                           return std::string(info.param.name);
                         });

}  // namespace
}  // namespace onepass::lang
