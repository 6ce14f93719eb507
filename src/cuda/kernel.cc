#include "cuda/kernel.h"

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>

#include "cuda/device.h"
#include "cuda/machine_code.h"

namespace onepass::cuda {
namespace {

// CUfunction_attribute.
constexpr int shared_size_bytes = 1, max_dynamic_shared_size_bytes = 8;

// One kernel of one source on one architecture: whoever comes first compiles it, others wait.
struct Entry {
  std::mutex mutex;
  bool compiled = false;
  std::string cubin;  // until it is loaded
  Kernel kernel;
  std::set<int> devices;  // whose memory holds it
};

struct Entries {
  std::mutex mutex;
  std::unordered_map<std::string, std::unique_ptr<Entry>> by_key;
};

Entries& entries() {
  static Entries all;
  return all;
}

std::string key_of(const KernelSource& source, const Capabilities& capabilities) {
  std::string key;
  key.reserve(source.configuration.size() + 64);
  key += source.name;
  key += '\0';
  key += std::to_string(capabilities.sm);
  key += ' ';
  key += source.configuration;
  return key;
}

// Null where there is none.
Entry* find_entry(const std::string& key) {
  const std::lock_guard lock(entries().mutex);
  const auto found = entries().by_key.find(key);
  return found == entries().by_key.end() ? nullptr : found->second.get();
}

Entry& entry_of(const std::string& key) {
  const std::lock_guard lock(entries().mutex);
  std::unique_ptr<Entry>& entry = entries().by_key[key];
  if (entry == nullptr) entry = std::make_unique<Entry>();
  return *entry;
}

// Its mutex is held, here and below.
Status compile_entry(Entry& entry, const KernelSource& source, const Problem& problem,
                     const Capabilities& capabilities) {
  if (entry.compiled) return {};
  Result<Compiled> code = machine_code(source.source(problem), architecture(capabilities));
  if (!code.ok()) return code.status();
  entry.cubin = std::move(code.value().cubin);
  entry.kernel.report = read_compile_log(code.value().log);
  entry.compiled = true;
  return {};
}

Status load_entry(Entry& entry, const Driver& driver, const std::string& name) {
  if (entry.kernel.handle != nullptr) return {};
  Library library = nullptr;
  Status status = driver.check(driver.library_load_data(&library, entry.cubin.data(), nullptr,
                                                        nullptr, 0, nullptr, nullptr, 0),
                               "kernel: loading");
  if (!status.ok()) return status;
  status = driver.check(driver.library_get_kernel(&entry.kernel.handle, library, name.c_str()),
                        ("kernel: " + name).c_str());
  if (status.ok()) std::string().swap(entry.cubin);
  return status;
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
Status load_on_device(Entry& entry, const Driver& driver, const Capabilities& capabilities) {
  const int device = capabilities.device.index;
  if (entry.devices.count(device) != 0) return {};
  const ContextScope context(driver, device);
  if (!context.status().ok()) return context.status();
  void* function = nullptr;
  Status status = driver.check(driver.kernel_get_function(&function, entry.kernel.handle),
                               "kernel: loading on the device");
  if (!status.ok()) return status;
  status = allow_shared_memory(driver, entry.kernel, capabilities);
  if (status.ok()) entry.devices.insert(device);
  return status;
}

}  // namespace

std::string verdict_on(const KernelSource& source, const CompileReport& report) {
  if (report.spill_bytes > 0) {
    return std::string("its compiled kernel ") + source.name + " spills " +
           std::to_string(report.spill_bytes) + " bytes of registers";
  }
  if (report.ignored.empty()) return {};
  return std::string("of its kernel ") + source.name +
         " the compiler says: " + report.ignored.front();
}

FoundKernel find_kernel(const KernelSource& source, const Capabilities& capabilities) {
  Entry* const entry = find_entry(key_of(source, capabilities));
  if (entry == nullptr) return {};
  const std::lock_guard lock(entry->mutex);
  const bool ready = entry->devices.count(capabilities.device.index) != 0;
  return {ready ? &entry->kernel : nullptr, entry->compiled ? &entry->kernel.report : nullptr};
}

Result<const CompileReport*> compile_kernel(const KernelSource& source, const Problem& problem,
                                            const Capabilities& capabilities) {
  Entry& entry = entry_of(key_of(source, capabilities));
  const std::lock_guard lock(entry.mutex);
  if (Status s = compile_entry(entry, source, problem, capabilities); !s.ok()) return s;
  return &entry.kernel.report;
}

Result<const Kernel*> prepare_kernel(const KernelSource& source, const Problem& problem,
                                     const Capabilities& capabilities) {
  const Result<Driver>& driver = cuda::driver();
  if (!driver.ok()) return driver.status();
  Entry& entry = entry_of(key_of(source, capabilities));
  const std::lock_guard lock(entry.mutex);
  if (Status s = compile_entry(entry, source, problem, capabilities); !s.ok()) return s;
  if (Status s = load_entry(entry, driver.value(), source.name); !s.ok()) return s;
  if (Status s = load_on_device(entry, driver.value(), capabilities); !s.ok()) return s;
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
