// A pack: compiled kernels in one file, made ahead of time, for machines without NVRTC.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "cuda/compiler.h"

namespace onepass::cuda {

/// A file is a header with a version, the CUDA that a driver must have and the number of entries,
/// then each entry (cache_entry.h) after its size; the last 32 bytes are a digest of all before. An
/// entry's key is the source and the options that its code depends on: any NVRTC may have compiled
/// it.
class Pack {
 public:
  /// `cuda_major`: of the NVRTC that compiles; 12 = CUDA 12.
  explicit Pack(int cuda_major = 0) : cuda_major_(cuda_major) {}

  void add(const std::string& source, const std::string& architecture, Compiled compiled);
  /// Null where the pack does not hold it.
  const Compiled* find(const std::string& source, const std::string& architecture) const;
  std::size_t size() const { return entries_.size(); }
  int cuda_major() const { return cuda_major_; }

  std::string bytes() const;
  /// Messages begin with `name`.
  static Result<Pack> from_bytes(const std::string& name, std::string_view bytes);

 private:
  int cuda_major_;
  std::map<std::string, Compiled> entries_;
};

/// The pack that ONEPASS_PACK names, read at the first call; an empty one where it names none. A
/// file that is no whole pack, or is of a newer CUDA than the driver here, is an error.
const Result<Pack>& given_pack();

}  // namespace onepass::cuda
