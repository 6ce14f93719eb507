// The walk meets every tile that is not skipped, once, in key order, and few of the others.
#include "lang/tile_walk.h"

#include <gtest/gtest.h>

#include "mask_reader.h"

namespace onepass::lang {
namespace {

/// Counts the questions asked.
struct CountingReader {
  const Classifier& classifier;
  std::int64_t* asked;
  TileKind classify(const TileRange& tile) const {
    ++*asked;
    return classifier.classify(tile);
  }
};

struct Walk {
  std::int64_t visited = 0, full = 0, asked = 0;
};

/// Walks one row of tiles and holds it to the classification of each single tile.
Walk walk(const Classifier& classifier, const TileRange& range, std::int64_t tile_keys) {
  Walk walk;
  std::int64_t next = range.col_begin;  // keys before it are visited or rightly skipped
  const auto expect_skipped = [&](std::int64_t end) {
    for (; next < end; next += tile_keys) {
      const TileRange tile = {range.row_begin, range.row_end, next,
                              std::min(next + tile_keys, range.col_end)};
      EXPECT_EQ(classifier.classify(tile), TileKind::skip) << line_of(tile) << " was passed by";
    }
  };
  for_each_tile(CountingReader{classifier, &walk.asked}, range.row_begin, range.row_end,
                range.col_begin, range.col_end, tile_keys,
                [&](std::int64_t begin, std::int64_t end, TileKind kind) {
                  expect_skipped(begin);
                  EXPECT_EQ(begin, next);
                  EXPECT_EQ(end, std::min(begin + tile_keys, range.col_end));
                  const TileRange tile = {range.row_begin, range.row_end, begin, end};
                  EXPECT_EQ(kind, classifier.classify(tile)) << line_of(tile);
                  EXPECT_NE(kind, TileKind::skip) << line_of(tile);
                  next = begin + tile_keys;
                  ++walk.visited;
                  walk.full += kind == TileKind::full;
                });
  expect_skipped(range.col_end);
  return walk;
}

Program mask_of(const char* text, const std::vector<Argument>& arguments = {}) {
  Result<Program> program = compile(text, Kind::mask, arguments);
  EXPECT_TRUE(program.ok()) << program.status().message;
  return program.value();
}

TEST(TileWalk, MeetsEveryTileThatMatters) {
  std::vector<std::int32_t> ids(1000);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i * i / 9000 % 7);
  std::vector<std::uint8_t> dense(300 * 1000);
  for (std::size_t i = 0; i < dense.size(); ++i)
    dense[i] = (i / 1000 / 40 + i % 1000 / 130) % 3 == 0;
  const std::vector<Argument> arguments = {
      {"ids", TensorView(ids.data(), DType::int32, {1, 1000})},
      {"m", TensorView(dense.data(), DType::boolean, {1, 1, 300, 1000})}};
  Scope scope;
  scope.s_q = 300;
  scope.s_kv = 1000;
  scope.q_start = 700;
  std::int64_t visited = 0;
  for (const char* text : {"causal", "window(90, 10)", "document(ids)", "causal & document(ids)",
                           "dense(m)", "k % 200 < 30", "false", "true", "sink_window(4, 100)"}) {
    const Program mask = mask_of(text, arguments);
    const MaskReader reader(mask, scope);
    for (const std::int64_t tile_keys : {1, 7, 64, 100, 256, 5000}) {
      for (const std::int64_t row : {0, 5, 192}) {
        SCOPED_TRACE(std::string(text) + " tile_keys " + std::to_string(tile_keys));
        visited += walk(reader.classifier, {row, std::min<std::int64_t>(row + 192, 300), 0, 1000},
                        tile_keys)
                       .visited;
        walk(reader.classifier, {row, row + 6, 133, 900}, tile_keys);
      }
    }
    EXPECT_EQ(walk(reader.classifier, {3, 3, 0, 1000}, 64).visited, 0);
    EXPECT_EQ(walk(reader.classifier, {0, 64, 200, 200}, 64).visited, 0);
  }
  EXPECT_GT(visited, 1000);
}

TEST(TileWalk, AsksAboutRangesNotAboutTiles) {
  Scope scope;
  scope.s_q = scope.s_kv = std::int64_t{1} << 40;
  const Program causal = mask_of("causal");
  const MaskReader reader(causal, scope);
  Walk first;  // nothing visible beyond the first tile
  for_each_tile(CountingReader{reader.classifier, &first.asked}, 0, 192, 0, scope.s_kv, 256,
                [&](std::int64_t, std::int64_t, TileKind) { ++first.visited; });
  EXPECT_EQ(first.visited, 1);
  EXPECT_LE(first.asked, 2 * 32 + 1);

  const Program window = mask_of("window(255, 0)");
  const MaskReader narrow(window, scope);
  Walk middle;
  const std::int64_t row = scope.s_q / 2 + 77;
  for_each_tile(CountingReader{narrow.classifier, &middle.asked}, row, row + 192, 0, scope.s_kv,
                256, [&](std::int64_t, std::int64_t, TileKind) { ++middle.visited; });
  EXPECT_GE(middle.visited, 2);
  EXPECT_LE(middle.visited, 3);
  EXPECT_LE(middle.asked, 6 * 32);
}

}  // namespace
}  // namespace onepass::lang
