// One compiled kernel as bytes with its key and a checksum: what caches and packs hold.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cuda/compiler.h"

namespace onepass::cuda {

/// A header with the sizes and a digest of the rest, then the whole key, the cubin and the log.
std::string to_entry(const std::string& key, const Compiled& compiled);

struct CacheEntry {
  std::string key;
  Compiled compiled;
};

/// Nothing where a byte is damaged, missing or too many.
std::optional<CacheEntry> from_entry(std::string_view bytes);

}  // namespace onepass::cuda
