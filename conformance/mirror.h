// Tensors of the host copied to a GPU and back: memory there for programs that have none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "onepass/attention.h"

namespace onepass::conformance {

/// Copies of host memory on a device, whose context is current for as long as it lives. On the CPU
/// the memory itself, and nothing is copied. Throws Error where the device or its memory fails.
class Mirror {
 public:
  /// With every tensor come `guard_bytes` before its first and after its last byte.
  explicit Mirror(Device device, std::size_t guard_bytes = 0);
  ~Mirror();
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;

  /// The tensor on the device, copied there from its first byte to its last. Tensors of the same
  /// bytes share them. Not given stays so.
  TensorView of(const TensorView& host);
  /// The sink, lse and the array arguments; what the host reads stays where it is.
  void take(Attention& options);
  /// Copies everything back, after all work on the device.
  void fetch();
  /// What `work` takes on the device's default stream, in seconds.
  double seconds_of(const std::function<void()>& work);
  void wait();

 private:
  using Range = std::pair<std::byte*, std::byte*>;  // of host memory
  Device device_;
  std::size_t guard_bytes_;
  void* events_[2] = {};
  std::map<Range, unsigned long long> copies_;
};

}  // namespace onepass::conformance
