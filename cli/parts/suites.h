// Named lists of problem lines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace onepass::cli {

/// Throws Error naming `argument` where there is no such suite.
std::vector<std::string> suite_of(std::string_view argument, std::string_view name);

}  // namespace onepass::cli
