// Memory of a GPU, contexts and streams for tests: the driver's functions that only tests call.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace onepass {

class TestDriver {
 public:
  /// Calls a function of the driver; the test fails if it does.
  template <class... Arguments>
  static void call(const char* name, Arguments... arguments) {
    static void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    using Function = int(Arguments...);
    auto* const function = reinterpret_cast<Function*>(dlsym(library, name));
    ASSERT_NE(function, nullptr) << name;
    EXPECT_EQ(function(arguments...), 0) << name;
  }
};

/// A context of device `index` that is current for as long as it lives.
class TestContext {
 public:
  explicit TestContext(int index = 0) : device_(index) {
    TestDriver::call("cuInit", 0U);
    TestDriver::call("cuDevicePrimaryCtxRetain", &context_, device_);
    TestDriver::call("cuCtxPushCurrent_v2", context_);
  }
  ~TestContext() {
    void* popped = nullptr;
    TestDriver::call("cuCtxPopCurrent_v2", &popped);
    TestDriver::call("cuDevicePrimaryCtxRelease_v2", device_);
  }
  TestContext(const TestContext&) = delete;
  TestContext& operator=(const TestContext&) = delete;
  void* context() const { return context_; }

  static void* current() {
    void* context = nullptr;
    TestDriver::call("cuCtxGetCurrent", &context);
    return context;
  }

 private:
  int device_;
  void* context_ = nullptr;
};

/// Bytes in the current context's device.
class DeviceMemory {
 public:
  explicit DeviceMemory(std::size_t bytes) : bytes_(bytes) {
    TestDriver::call("cuMemAlloc_v2", &address_, bytes);
  }
  template <class T>
  explicit DeviceMemory(const std::vector<T>& values) : DeviceMemory(values.size() * sizeof(T)) {
    TestDriver::call("cuMemcpyHtoD_v2", address_, static_cast<const void*>(values.data()), bytes_);
  }
  ~DeviceMemory() { TestDriver::call("cuMemFree_v2", address_); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  void* data() const { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address_)); }
  /// Its values, after all work on the device.
  template <class T>
  std::vector<T> values() const {
    std::vector<T> out(bytes_ / sizeof(T));
    TestDriver::call("cuCtxSynchronize");
    TestDriver::call("cuMemcpyDtoH_v2", static_cast<void*>(out.data()), address_, bytes_);
    return out;
  }

 private:
  unsigned long long address_ = 0;
  std::size_t bytes_;
};

}  // namespace onepass
