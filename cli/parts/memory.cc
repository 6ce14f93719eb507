#include "cli/parts/memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <limits>

#include "onepass/status.h"

namespace onepass::cli {
namespace {

constexpr std::int64_t unknown = std::numeric_limits<std::int64_t>::max();

// What the whole machine has left.
std::int64_t machine_bytes() {
  std::ifstream lines("/proc/meminfo");
  for (std::string word; lines >> word;) {
    std::int64_t kibibytes = 0;
    if (word == "MemAvailable:" && lines >> kibibytes) return kibibytes * 1024;
  }
  return static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

// What a container's limit leaves (control groups, version 2).
std::int64_t container_bytes() {
  std::ifstream limit("/sys/fs/cgroup/memory.max"), used("/sys/fs/cgroup/memory.current");
  std::int64_t limit_bytes = 0, used_bytes = 0;
  if (!(limit >> limit_bytes) || !(used >> used_bytes)) return unknown;
  return std::max<std::int64_t>(limit_bytes - used_bytes, 0);
}

}  // namespace

std::int64_t available_memory_bytes() { return std::min(machine_bytes(), container_bytes()); }

void require_memory(const std::string& what, double bytes) {
  const std::int64_t available = available_memory_bytes();
  if (bytes <= static_cast<double>(available)) return;
  char needed[400];
  std::snprintf(needed, sizeof needed, "%.0f", bytes);
  throw Error({Code::runtime_error, std::string("memory: ") + needed + " bytes for " + what +
                                        "; up to " + std::to_string(available) +
                                        ", which are free here, are allowed; use smaller sizes"});
}

}  // namespace onepass::cli
