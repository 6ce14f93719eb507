#include "cuda/kernel_text.h"

#include <algorithm>
#include <set>

namespace onepass::cuda {
namespace {

constexpr std::string_view include = "#include \"";

void append(std::string_view name, std::set<std::string_view>& seen, std::string& out) {
  if (!seen.insert(name).second) return;
  const std::span<const TextFile> files = text_files();
  const auto file = std::find_if(files.begin(), files.end(),
                                 [&](const TextFile& one) { return one.name == name; });
  if (file == files.end()) {
    // For the compiler's log, which the Status of the failure quotes.
    out += "#error \"no kernel text " + std::string(name) + "\"\n";
    return;
  }
  for (std::string_view rest = file->text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.substr(0, include.size()) == include) {
      append(line.substr(include.size(), line.rfind('"') - include.size()), seen, out);
    } else if (line != "#pragma once") {
      out += std::string(line) + "\n";
    }
  }
}

}  // namespace

std::string kernel_text(std::string_view name) {
  std::string out;
  std::set<std::string_view> seen;
  append(name, seen, out);
  return out;
}

}  // namespace onepass::cuda
