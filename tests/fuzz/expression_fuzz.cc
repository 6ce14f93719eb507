// Any bytes as an expression: a program whose nodes are in order and whose text compiles again, or
// a message; never a crash.
//
// Input: `m` or `s` (mask or score), the expression, and after an optional `@` the definitions.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "lang/compile.h"
#include "lang/derivative.h"

namespace {

using namespace onepass;

std::vector<Argument> arguments() {
  static std::array<std::int64_t, 16> ints{};
  static std::array<double, 16> reals{};
  static std::array<bool, 16> bools{};
  return {{"ids", TensorView(ints.data(), DType::int64, {2, 8})},
          {"n", TensorView(ints.data(), DType::int64, {16})},
          {"f", TensorView(reals.data(), {2, 2, 2, 2})},
          {"x", TensorView(reals.data(), {})},
          {"m", TensorView(bools.data(), DType::boolean, {16})},
          {"w", std::int64_t{5}},
          {"t", 0.5},
          {"flag", true}};
}

void require(bool holds) {
  if (!holds) std::abort();
}

void check(const lang::Program& program, const std::vector<Argument>& given) {
  require(program.root == static_cast<std::int32_t>(program.nodes.size()) - 1);
  for (std::size_t i = 0; i < program.nodes.size(); ++i) {
    const lang::Node& node = program.nodes[i];
    for (std::size_t j = 0; j < node.operands; ++j) {
      require(node.operand[j] >= 0 && node.operand[j] < static_cast<std::int32_t>(i));
    }
    const auto slot = static_cast<std::size_t>(node.slot);
    if (node.op == lang::Op::parameter) require(slot < program.parameters.size());
    if (node.op == lang::Op::load) require(slot < program.arrays.size());
  }
  const std::string text = lang::to_text(program);
  // Long terms come as definitions, which may nest deeper than a caller may write.
  if (text.find(';') == text.npos) require(lang::compile(text, program.kind, given).ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<Argument> given = arguments();
  std::string_view text(reinterpret_cast<const char*>(data), size);
  const lang::Kind kind = text.starts_with('s') ? lang::Kind::score : lang::Kind::mask;
  if (!text.empty()) text.remove_prefix(1);
  const std::size_t at = text.find('@');
  std::string_view definitions;
  if (at != text.npos) definitions = text.substr(at + 1);
  const auto program = lang::compile(text.substr(0, at), kind, given, definitions);
  if (!program.ok()) {
    require(!program.status().message.empty());
    return 0;
  }
  check(program.value(), given);
  require(program.value().nodes.size() <= 4096);
  if (kind == lang::Kind::mask) return 0;
  check(lang::derivative_logit(program.value()), given);
  for (const lang::ArrayDerivative& one : lang::derivative_arrays(program.value())) {
    check(one.factor, given);
    for (const lang::Program& index : one.index) check(index, given);
  }
  return 0;
}
