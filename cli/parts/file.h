// Whole files.
#pragma once

#include <string>

#include "onepass/status.h"

namespace onepass::cli {

/// Status{} or why `path` is not one; `wanted` names what it should be, as in "a text file".
Status check_regular(const std::string& path, const std::string& wanted);

/// The bytes of a regular file. Messages begin with the path.
Result<std::string> read_file(const std::string& path);

}  // namespace onepass::cli
