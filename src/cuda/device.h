// The GPUs of this machine, and working on one of them without changing the caller's.
#pragma once

#include <string>

#include "cuda/driver.h"
#include "onepass/plan.h"

namespace onepass::cuda {

/// What kernels are compiled for: "sm_90a" for compute capability 9.0, whose own instructions need
/// the a, else as "sm_86".
std::string architecture(const Capabilities& capabilities);

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
