// Memory of summaries, which calls share them, and masks that are not analysed.
#include <gtest/gtest.h>

#include <limits>

#include "mask_reader.h"

namespace onepass::lang {
namespace {

class IntervalSummaries : public testing::Test {
 protected:
  IntervalSummaries() {
    for (std::size_t i = 0; i < ids_.size(); ++i) ids_[i] = static_cast<std::int64_t>(i / 100);
    for (std::size_t i = 0; i < weights_.size(); ++i) weights_[i] = static_cast<float>(i / 64);
    scope_.s_q = 256;
    scope_.s_kv = 512;
    scope_.q_start = 256;
  }

  Program mask(const std::string& text) {
    const std::vector<Argument> arguments = {
        {"ids", TensorView(ids_.data(), DType::int64, {1, 512})},
        {"per_head", TensorView(ids_.data(), DType::int64, {2, 256})},
        {"weights", TensorView(weights_.data(), DType::float32, {512})},
        {"keep", TensorView(ids_.data(), DType::boolean, {1, 1, 1, 512})},
        {"n", TensorView(ids_.data(), DType::int64, {2})},
        {"far", TensorView(ids_.data(), DType::int64, {512}, Device{Device::Kind::cuda, 0})}};
    Result<Program> program = compile(text, Kind::mask, arguments);
    EXPECT_TRUE(program.ok()) << program.status().message;
    return program.value();
  }

  std::int64_t bytes(const std::string& text) {
    return Summaries::bytes(mask(text), scope_.s_q, scope_.s_kv);
  }

  std::vector<std::int64_t> ids_ = std::vector<std::int64_t>(512);
  std::vector<float> weights_ = std::vector<float>(512);
  Scope scope_;
};

TEST_F(IntervalSummaries, NothingToSummarise) {
  for (const char* text : {"causal", "window(9, 9)", "lengths(n)", "k < n[h] | causal", "true"}) {
    EXPECT_EQ(bytes(text), 0) << text;
  }
}

TEST_F(IntervalSummaries, GrowWithTheLengths) {
  EXPECT_GT(bytes("document(ids)"), 0);
  EXPECT_LE(bytes("document(ids)"), 10 * (256 + 512));
  EXPECT_LE(bytes("weights[k] > 0.5"), 512);
  const Program document = mask("document(ids)");
  EXPECT_EQ(Summaries::bytes(document, 0, 0), 0);
  EXPECT_EQ(Summaries::bytes(document, 1, 1) % 64, 0);
}

TEST_F(IntervalSummaries, NothingIsWrittenBeyondThem) {
  for (const char* text : {"document(ids)", "weights[k] > 0.5", "ids[b, q] == per_head[h, k]"}) {
    const Program program = mask(text);
    for (const std::int64_t s : {1, 63, 64, 65, 512}) {
      Scope scope = scope_;
      scope.s_q = std::max<std::int64_t>(s / 2, 1);
      scope.s_kv = s;
      const std::int64_t bytes = Summaries::bytes(program, scope.s_q, scope.s_kv);
      std::vector<char> memory(static_cast<std::size_t>(bytes + 64 + 64), char{0x5a});
      char* at = memory.data();
      while (reinterpret_cast<std::uintptr_t>(at) % 64 != 0) ++at;
      const Summaries summaries(program, scope, at);
      for (char* guard = at + bytes; guard < memory.data() + memory.size(); ++guard) {
        ASSERT_EQ(*guard, char{0x5a}) << text << " s " << s;
      }
    }
  }
}

TEST_F(IntervalSummaries, SharedByHeadsUnlessOneIsRead) {
  EXPECT_FALSE(Summaries::per_head(mask("document(ids)")));
  EXPECT_FALSE(Summaries::per_head(mask("causal & keep[b, h, row, col]")));
  EXPECT_FALSE(Summaries::per_head(mask("h == 0 | document(ids)")));
  EXPECT_TRUE(Summaries::per_head(mask("per_head[h, k] > q")));

  // The classifier of head 1 with the summaries of head 0.
  const Program program = mask("h == 0 ? document(ids) : causal");
  std::vector<char> memory(
      static_cast<std::size_t>(Summaries::bytes(program, scope_.s_q, scope_.s_kv)) + 64);
  char* at = memory.data();
  while (reinterpret_cast<std::uintptr_t>(at) % 64 != 0) ++at;
  const Summaries summaries(program, scope_, at);
  Scope other = scope_;
  other.h = 1;
  const TileRange tile = {128, 192, 0, 64};
  EXPECT_EQ(Classifier(program, scope_, summaries).classify(tile), TileKind::skip);
  EXPECT_EQ(Classifier(program, other, summaries).classify(tile), TileKind::full);
}

TEST_F(IntervalSummaries, ReadsOfEveryTypeDecideTiles) {
  for (std::size_t i = 0; i < weights_.size(); ++i) weights_[i] = i < 128 ? 1.0f : -1.0f;
  const Program program = mask("weights[k] > 0.5");
  {
    const MaskReader reader(program, scope_);
    EXPECT_EQ(reader.classifier.classify({0, 64, 0, 128}), TileKind::full);
    EXPECT_EQ(reader.classifier.classify({0, 64, 128, 512}), TileKind::skip);
    EXPECT_EQ(reader.classifier.classify({0, 64, 100, 150}), TileKind::partial);
  }
  weights_[5] = std::numeric_limits<float>::quiet_NaN();
  const MaskReader reader(program, scope_);
  EXPECT_EQ(reader.classifier.classify({0, 64, 0, 128}), TileKind::partial);
  EXPECT_EQ(reader.classifier.classify({0, 64, 5, 6}), TileKind::skip);
  EXPECT_EQ(reader.classifier.classify({0, 64, 6, 128}), TileKind::full);
}

TEST_F(IntervalSummaries, WithoutThemReadsAreUnknown) {
  const Program program = mask("causal & document(ids)");
  const Classifier classifier(program, scope_, Summaries());
  EXPECT_EQ(classifier.classify({0, 64, 448, 512}), TileKind::skip);
  EXPECT_EQ(classifier.classify({128, 192, 0, 64}), TileKind::partial);
}

TEST_F(IntervalSummaries, DeviceArraysAreNotRead) {
  const Program program = mask("far[k] > 3 & causal");
  EXPECT_EQ(Summaries::bytes(program, 256, 512), 0);
  const MaskReader reader(program, scope_);
  EXPECT_EQ(reader.classifier.classify({0, 64, 0, 64}), TileKind::partial);
  EXPECT_EQ(reader.classifier.classify({64, 64, 0, 64}), TileKind::skip);
  EXPECT_FALSE(fits_int32(program, scope_));
}

TEST_F(IntervalSummaries, LongMasksArePartial) {
  std::string text = "k == 1";
  for (int i = 2; i < 200; ++i) text += " | k == q * " + std::to_string(i);
  const Program program = mask(text);
  ASSERT_GT(program.nodes.size(), 256u);
  const MaskReader reader(program, scope_);
  EXPECT_EQ(reader.classifier.classify({0, 6, 0, 64}), TileKind::partial);
  EXPECT_FALSE(fits_int32(program, scope_));
}

TEST_F(IntervalSummaries, TilesBeyondTheLengthsAreCut) {
  const Program program = mask("causal");
  const MaskReader reader(program, scope_);
  EXPECT_EQ(reader.classifier.classify({192, 384, 0, 256}), TileKind::full);
  EXPECT_EQ(reader.classifier.classify({0, 64, 512, 600}), TileKind::skip);
  EXPECT_EQ(reader.classifier.classify({256, 300, 0, 64}), TileKind::skip);
}

}  // namespace
}  // namespace onepass::lang
