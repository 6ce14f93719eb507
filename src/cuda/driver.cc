#include "cuda/driver.h"

#include "cuda/shared_library.h"

namespace onepass::cuda {
namespace {

constexpr int oldest_driver = 12000;
constexpr const char* advice =
    "; an NVIDIA driver for CUDA 12.0 or newer is needed; install or update it, or pass tensors "
    "in host memory";

Status unavailable(const std::string& found) {
  return {Code::runtime_error, "cuda: " + found + advice};
}

}  // namespace

Status Driver::check(int result, const char* what) const {
  if (result == 0) return {};
  const char* words = nullptr;
  if (get_error_string(result, &words) != 0 || words == nullptr) words = "unknown error";
  return {Code::runtime_error, std::string(what) + ": " + words + " (CUDA error " +
                                   std::to_string(result) +
                                   "); the device must be free of errors and have memory left; "
                                   "look for an earlier failure on it"};
}

bool Driver::captures(Stream stream) const {
  constexpr int capture_implicit = 906;  // the default stream while another one is captured
  int status = 0;
  return stream_is_capturing(stream, &status) == capture_implicit || status != 0;
}

Result<Driver> load_driver(const std::string& name) {
  SharedLibrary library(name);
  if (!library.opened()) return unavailable("no driver (" + library.error() + ")");
  Driver d{};
  int (*init)(unsigned) = nullptr;
  int (*get_version)(int*) = nullptr;
  library.find("cuInit", init);
  library.find("cuDriverGetVersion", get_version);
  if (!library.missing().empty()) return unavailable(name + " lacks " + library.missing());
  get_version(&d.version);
  if (d.version < oldest_driver) {
    return unavailable("the driver is for CUDA " + std::to_string(d.version / 1000) + "." +
                       std::to_string(d.version % 1000 / 10));
  }
  library.find("cuGetErrorString", d.get_error_string);
  library.find("cuDeviceGet", d.device_get);
  library.find("cuDeviceGetCount", d.device_get_count);
  library.find("cuDeviceGetAttribute", d.device_get_attribute);
  library.find("cuCtxGetCurrent", d.context_get_current);
  library.find("cuCtxGetDevice", d.context_get_device);
  library.find("cuCtxPushCurrent_v2", d.context_push);
  library.find("cuCtxPopCurrent_v2", d.context_pop);
  library.find("cuDevicePrimaryCtxRetain", d.primary_context_retain);
  library.find("cuLibraryLoadData", d.library_load_data);
  library.find("cuLibraryGetKernel", d.library_get_kernel);
  library.find("cuKernelGetFunction", d.kernel_get_function);
  library.find("cuKernelGetAttribute", d.kernel_get_attribute);
  library.find("cuKernelSetAttribute", d.kernel_set_attribute);
  library.find("cuMemPoolCreate", d.pool_create);
  library.find("cuMemPoolSetAttribute", d.pool_set_attribute);
  library.find("cuMemAllocFromPoolAsync", d.memory_take);
  library.find("cuMemFreeAsync", d.memory_give_back);
  library.find("cuMemsetD32Async", d.memory_set);
  library.find("cuStreamIsCapturing", d.stream_is_capturing);
  library.find("cuTensorMapEncodeTiled", d.tensor_map_encode);
  library.find("cuLaunchKernel", d.launch_kernel);
  if (!library.missing().empty()) return unavailable("the driver lacks " + library.missing());
  if (const int result = init(0); result != 0) {
    return unavailable(d.check(result, "the driver does not start").message);
  }
  return d;
}

const Result<Driver>& driver() {
  static const Result<Driver> loaded = load_driver("libcuda.so.1");
  return loaded;
}

}  // namespace onepass::cuda
