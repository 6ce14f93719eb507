#include "cuda/compile_log.h"

#include <algorithm>
#include <charconv>

namespace onepass::cuda {
namespace {

// The number that stands before `words`, as in "8 bytes spill stores"; 0 if the line has none.
std::int64_t number_before(std::string_view line, std::string_view words) {
  const std::size_t end = line.find(words);
  if (end == std::string_view::npos) return 0;
  std::size_t begin = end;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  std::int64_t number = 0;
  std::from_chars(line.data() + begin, line.data() + end, number);
  return number;
}

bool lost_effect(std::string_view line) {
  for (const char* code : {"C7508", "C7512", "C7513", "C7514", "C7515"}) {
    if (line.find(code) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

CompileReport read_compile_log(std::string_view log) {
  CompileReport report;
  while (!log.empty()) {
    const std::string_view line = log.substr(0, log.find('\n'));
    log.remove_prefix(std::min(log.size(), line.size() + 1));
    report.registers =
        std::max(report.registers, static_cast<int>(number_before(line, " registers")));
    report.stack_bytes += number_before(line, " bytes stack frame");
    report.spill_bytes += number_before(line, " bytes spill stores");
    report.spill_bytes += number_before(line, " bytes spill loads");
    if (lost_effect(line)) report.ignored.emplace_back(line);
  }
  return report;
}

}  // namespace onepass::cuda
