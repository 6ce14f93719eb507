// Problem lines of any bytes: a message, or a line whose print reads back as the same print.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/problem_line.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace onepass;
  const Result<ProblemLine> line = parse_problem_line({reinterpret_cast<const char*>(data), size});
  if (!line.ok()) {
    if (line.status().message.empty()) std::abort();
    return 0;
  }
  const std::string text = to_text(line.value());
  const Result<ProblemLine> again = parse_problem_line(text);
  if (!again.ok() || to_text(again.value()) != text) std::abort();
  return 0;
}
