#include "cuda/kernel.h"

#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "cuda/device.h"

namespace onepass::cuda {
namespace {

// CUfunction_attribute.
constexpr int shared_size_bytes = 1, max_dynamic_shared_size_bytes = 8;

std::string cache_key(const Nvrtc& nvrtc, const std::string& source,
                      const std::string& architecture) {
  std::string key = nvrtc.identity + "\n";
  for (const std::string& option : compile_options(nvrtc, architecture)) key += option + "\n";
  return key + source;
}

// One kernel of one source on one architecture: whoever comes first loads it, others wait.
struct Entry {
  std::mutex mutex;
  Kernel kernel;
  std::set<int> devices;  // whose memory holds it
};

Entry& entry_of(const std::string& key) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<Entry>> entries;
  const std::lock_guard lock(mutex);
  std::unique_ptr<Entry>& entry = entries[key];
  if (entry == nullptr) entry = std::make_unique<Entry>();
  return *entry;
}

Result<Kernel> load(const Driver& driver, const std::string& source, const std::string& name,
                    const std::string& architecture) {
  const Result<Nvrtc>& compiler = nvrtc();
  if (!compiler.ok()) return compiler.status();
  const Result<Compiled> compiled =
      compile_cached(DiskCache(cache_folder()), compiler.value(), source, architecture);
  if (!compiled.ok()) return compiled.status();
  Library library = nullptr;
  Status status = driver.check(driver.library_load_data(&library, compiled.value().cubin.data(),
                                                        nullptr, nullptr, 0, nullptr, nullptr, 0),
                               "kernel: loading");
  if (!status.ok()) return status;
  Kernel kernel{nullptr, read_compile_log(compiled.value().log)};
  status = driver.check(driver.library_get_kernel(&kernel.handle, library, name.c_str()),
                        ("kernel: " + name).c_str());
  if (!status.ok()) return status;
  return kernel;
}

// Lets it take all shared memory of a block there that its own arrays leave.
Status allow_shared_memory(const Driver& driver, const Kernel& kernel,
                           const Capabilities& capabilities) {
  DeviceId id = 0;
  int own_bytes = 0;
  Status status = driver.check(driver.device_get(&id, capabilities.device.index), "cuda: device");
  if (!status.ok()) return status;
  status =
      driver.check(driver.kernel_get_attribute(&own_bytes, shared_size_bytes, kernel.handle, id),
                   "kernel: shared memory of its own");
  if (!status.ok()) return status;
  const int most = static_cast<int>(capabilities.shared_bytes) - own_bytes;
  return driver.check(
      driver.kernel_set_attribute(max_dynamic_shared_size_bytes, most, kernel.handle, id),
      "kernel: shared memory");
}

// Makes the driver load it into the device's memory now.
Status load_on_device(const Driver& driver, const Kernel& kernel,
                      const Capabilities& capabilities) {
  const ContextScope context(driver, capabilities.device.index);
  if (!context.status().ok()) return context.status();
  void* function = nullptr;
  Status status = driver.check(driver.kernel_get_function(&function, kernel.handle),
                               "kernel: loading on the device");
  if (!status.ok()) return status;
  return allow_shared_memory(driver, kernel, capabilities);
}

}  // namespace

Result<Compiled> compile_cached(const DiskCache& cache, const Nvrtc& nvrtc,
                                const std::string& source, const std::string& architecture) {
  const std::string key = cache_key(nvrtc, source, architecture);
  if (std::optional<Compiled> kept = cache.read(key)) return std::move(*kept);
  Result<Compiled> compiled = compile(nvrtc, source, architecture);
  if (compiled.ok()) cache.write(key, compiled.value());
  return compiled;
}

Result<const Kernel*> prepare_kernel(const std::string& source, const std::string& name,
                                     const Capabilities& capabilities) {
  const Result<Driver>& driver = cuda::driver();
  if (!driver.ok()) return driver.status();
  const std::string target = architecture(capabilities);
  Entry& entry = entry_of(target + " " + name + "\n" + source);
  const std::lock_guard lock(entry.mutex);
  if (entry.kernel.handle == nullptr) {
    Result<Kernel> loaded = load(driver.value(), source, name, target);
    if (!loaded.ok()) return loaded.status();
    entry.kernel = std::move(loaded.value());
  }
  const int device = capabilities.device.index;
  if (entry.devices.count(device) == 0) {
    if (Status s = load_on_device(driver.value(), entry.kernel, capabilities); !s.ok()) return s;
    entry.devices.insert(device);
  }
  return &entry.kernel;
}

Status launch_kernel(const Kernel& kernel, int device, const Grid& grid, void* stream,
                     const void* call) {
  const Result<Driver>& driver = cuda::driver();
  if (!driver.ok()) return driver.status();
  const ContextScope context(driver.value(), device);
  if (!context.status().ok()) return context.status();
  void* arguments[] = {const_cast<void*>(call)};
  return driver.value().check(
      driver.value().launch_kernel(kernel.handle, grid.blocks, 1, 1, grid.threads, 1, 1,
                                   grid.shared_bytes, stream, arguments, nullptr),
      "kernel: launch");
}

}  // namespace onepass::cuda
