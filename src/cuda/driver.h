// The CUDA driver's functions that onepass calls, declared here and found at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "onepass/status.h"

namespace onepass::cuda {

// Handles of the driver's ABI. A loaded kernel is a CUkernel, which belongs to no context.
using DeviceId = int;
using Context = void*;
using Stream = void*;
using Library = void*;
using KernelHandle = void*;
using MemoryPool = void*;
using DeviceAddress = unsigned long long;

struct Driver {
  int version = 0;  // 13000 = CUDA 13.0

  int (*get_error_string)(int, const char**);
  int (*device_get)(DeviceId*, int);
  int (*device_get_count)(int*);
  int (*device_get_attribute)(int*, int, DeviceId);
  int (*context_get_current)(Context*);
  int (*context_get_device)(DeviceId*);
  int (*context_push)(Context);
  int (*context_pop)(Context*);
  int (*primary_context_retain)(Context*, DeviceId);
  int (*library_load_data)(Library*, const void*, int*, void**, unsigned, int*, void**, unsigned);
  int (*library_get_kernel)(KernelHandle*, Library, const char*);
  int (*kernel_get_function)(void**, KernelHandle);
  int (*kernel_get_attribute)(int*, int, KernelHandle, DeviceId);
  int (*kernel_set_attribute)(int, int, KernelHandle, DeviceId);
  int (*pool_create)(MemoryPool*, const void*);
  int (*pool_set_attribute)(MemoryPool, int, void*);
  int (*memory_take)(DeviceAddress*, std::size_t, MemoryPool, Stream);
  int (*memory_give_back)(DeviceAddress, Stream);
  int (*memory_set)(DeviceAddress, unsigned, std::size_t, Stream);
  int (*stream_is_capturing)(Stream, int*);
  int (*tensor_map_encode)(void*, int, unsigned, void*, const std::uint64_t*, const std::uint64_t*,
                           const std::uint32_t*, const std::uint32_t*, int, int, int, int);
  int (*launch_kernel)(KernelHandle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                       unsigned, Stream, void**, void**);

  /// The Status of a call that returned `result`: ok for 0, else `what: the driver's words; ...`.
  Status check(int result, const char* what) const;
  /// Work on the stream is being recorded into a graph, so that nothing may be compiled or loaded.
  bool captures(Stream stream) const;
};

/// Loads a driver library and starts it. A Status says which piece is missing.
Result<Driver> load_driver(const std::string& library);

/// This process's driver, libcuda.so.1: loaded at the first call, which threads may make at once.
const Result<Driver>& driver();

}  // namespace onepass::cuda
