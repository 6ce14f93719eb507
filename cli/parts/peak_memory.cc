#include "cli/parts/peak_memory.h"

#include <fstream>
#include <string>

namespace onepass::cli {
namespace {

// A line such as `VmHWM:  1234 kB` of /proc/self/status.
std::int64_t status_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::int64_t kibibytes = 0;
    if (word == name && status >> kibibytes) return kibibytes * 1024;
  }
  return -1;
}

}  // namespace

bool reset_peak_memory() {
  std::ofstream clear("/proc/self/clear_refs");
  clear << "5";  // proc(5): the peak resident set size becomes the current one
  clear.close();
  return static_cast<bool>(clear);
}

std::int64_t peak_memory_bytes() { return status_bytes("VmHWM:"); }
std::int64_t memory_bytes() { return status_bytes("VmRSS:"); }

}  // namespace onepass::cli
