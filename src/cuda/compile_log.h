// What the compiler's log says of a kernel, as data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace onepass::cuda {

struct CompileReport {
  int registers = 0;                 // most a thread of any kernel in the source takes
  std::int64_t stack_bytes = 0;      // of all functions together
  std::int64_t spill_bytes = 0;      // stored and loaded again, of all functions together
  std::vector<std::string> ignored;  // ptxas' lines that say wgmma or setmaxnreg lost its effect
};

/// Reads ptxas' verbose lines and its advisories C7508 (setmaxnreg ignored), C7512, C7513, C7514
/// and C7515 (wgmma serialised).
CompileReport read_compile_log(std::string_view log);

}  // namespace onepass::cuda
