// Every example of docs/expressions.md compiles; every error shown is the error given.
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <string>
#include <vector>

#include "lang/compile.h"

namespace onepass::lang {
namespace {

std::vector<std::string> lines_of_document() {
  std::ifstream file(ONEPASS_SOURCE_DIR "/docs/expressions.md");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

/// The lines of all fenced blocks of this kind.
std::vector<std::string> block(const std::string& kind) {
  std::vector<std::string> out;
  bool inside = false;
  for (const std::string& line : lines_of_document()) {
    if (inside && line != "```") out.push_back(line);
    inside = line == "```" + kind || (inside && line != "```");
  }
  return out;
}

/// The code in the first column of the table with this head.
std::vector<std::string> table(const std::string& head) {
  std::vector<std::string> out;
  bool inside = false;
  for (const std::string& line : lines_of_document()) {
    inside = line.rfind("| " + head + " |", 0) == 0 || (inside && line.rfind("|", 0) == 0);
    if (!inside || line.rfind("| `", 0) != 0) continue;
    out.push_back(line.substr(3, line.find('`', 3) - 3));
  }
  return out;
}

Result<Program> compiled(const std::string& text, Kind kind) {
  static std::array<std::int64_t, 64> ints{};
  static std::array<float, 64> floats{};
  static std::array<bool, 64> bools{};
  const TensorView m = kind == Kind::mask ? TensorView(bools.data(), DType::boolean, {1, 1, 4, 4})
                                          : TensorView(floats.data(), {1, 1, 4, 4});
  const std::vector<Argument> arguments{{"ids", TensorView(ints.data(), DType::int64, {2, 4})},
                                        {"n", TensorView(ints.data(), DType::int64, {2})},
                                        {"m", m},
                                        {"slopes", TensorView(floats.data(), {4})},
                                        {"table", TensorView(floats.data(), {4, 16})},
                                        {"temperature", 0.5},
                                        {"radius", TensorView(ints.data(), DType::int64, {4})}};
  std::string definitions;
  for (const std::string& line : block("definitions")) definitions += line + "\n";
  return compile(text, kind, arguments, definitions);
}

TEST(LangDocument, EveryExampleCompiles) {
  for (const auto& [kind, head, label, least] : {std::tuple{Kind::mask, "Mask", "mask", 20u},
                                                 std::tuple{Kind::score, "Score", "score", 7u}}) {
    std::vector<std::string> examples = table(head);
    for (const std::string& line : block(label)) examples.push_back(line);
    EXPECT_GE(examples.size(), least);
    for (const std::string& text : examples) {
      const Result<Program> program = compiled(text, kind);
      EXPECT_TRUE(program.ok()) << text << "\n" << program.status().message;
    }
  }
}

TEST(LangDocument, EveryErrorIsTheOneShown) {
  const std::vector<std::string> lines = block("error");
  ASSERT_GE(lines.size(), 4u);
  for (std::size_t i = 0; i + 1 < lines.size(); i += 2) {
    EXPECT_EQ(compiled(lines[i], Kind::mask).status().message, lines[i + 1]);
  }
}

}  // namespace
}  // namespace onepass::lang
