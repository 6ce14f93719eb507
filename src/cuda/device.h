// The GPUs of this machine, and working on one of them without changing the caller's.
#pragma once

#include <string>
#include <string_view>

#include "cuda/driver.h"
#include "onepass/plan.h"

namespace onepass::cuda {

/// What kernels are compiled for: "sm_90a" for compute capability 9.0, whose own instructions need
/// the a, else as "sm_86".
std::string architecture(const Capabilities& capabilities);

/// What is known of every GPU of such an architecture, as device 0, so that its kernels can be
/// planned and compiled without one. The message of a failure wants the argument's name before it.
Result<Capabilities> capabilities_of(std::string_view architecture);

/// Makes a context of one device current for as long as it lives: the caller's where that is of
/// this device, else the device's primary one, after which the caller's is current again.
class ContextScope {
 public:
  ContextScope(const Driver& driver, int device);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  /// Why there is no context; ok = it is current.
  const Status& status() const { return status_; }

 private:
  const Driver& driver_;
  Status status_;
  bool pushed_ = false;
};

}  // namespace onepass::cuda
