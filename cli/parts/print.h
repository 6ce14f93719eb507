// Data on stdout.
#pragma once

#include <cstdio>
#include <string_view>

#include "onepass/status.h"

namespace onepass::cli {

/// Throws Error where what was printed so far cannot be written.
inline void flush_stdout() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  throw Error({Code::runtime_error,
               "stdout: cannot be written; an open pipe or a disk with room is needed; check it"});
}

/// Writes at once, so that work stops where nobody can see its results.
inline void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  flush_stdout();
}

}  // namespace onepass::cli
