// Whole files.
#pragma once

#include <string>

#include "onepass/status.h"

namespace onepass::cli {

/// The bytes of a regular file. Messages begin with the path.
Result<std::string> read_file(const std::string& path);

/// Status{} or why the text could not be written.
Status write_file(const std::string& path, const std::string& text);

}  // namespace onepass::cli
