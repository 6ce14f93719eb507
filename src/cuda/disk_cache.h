// Compiled kernels kept between processes: one file each, in a folder private to the user.
#pragma once

#include <optional>
#include <string>

#include "cuda/compiler.h"

namespace onepass::cuda {

/// A file is `key digest`.cubin and holds one entry (cache_entry.h). What is damaged, holds another
/// key or belongs to someone else reads as absent; what cannot be written is not kept. Neither ever
/// fails a call.
class DiskCache {
 public:
  /// In `folder`, made with its parents when something is first written; empty = keeps nothing.
  explicit DiskCache(std::string folder) : folder_(std::move(folder)) {}

  std::optional<Compiled> read(const std::string& key) const;
  /// True if it is kept now.
  bool write(const std::string& key, const Compiled& compiled) const;

 private:
  std::string folder_;
};

/// ONEPASS_CACHE where it is set (empty = no cache), else XDG_CACHE_HOME/onepass, else
/// ~/.cache/onepass; empty without a home.
std::string cache_folder();

}  // namespace onepass::cuda
