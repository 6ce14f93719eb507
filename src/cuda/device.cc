#include "cuda/device.h"

#include <map>
#include <mutex>

namespace onepass {
namespace {

// CUdevice_attribute.
enum Attribute : int {
  multiprocessor_count = 16,
  compute_capability_major = 75,
  compute_capability_minor = 76,
  max_shared_memory_per_block_optin = 97,
};

constexpr int oldest_sm = 80;

Result<int> attribute(const cuda::Driver& driver, Attribute which, int device) {
  cuda::DeviceId id = 0;
  int value = 0;
  Status status = driver.check(driver.device_get(&id, device), "cuda: device");
  if (!status.ok()) return status;
  status = driver.check(driver.device_get_attribute(&value, which, id), "cuda: device attribute");
  if (!status.ok()) return status;
  return value;
}

// Asked of the driver once a device: its answers never change.
Result<Capabilities> ask_capabilities(int device) {
  const Result<cuda::Driver>& driver = cuda::driver();
  if (!driver.ok()) return driver.status();
  int count = 0;
  Status status =
      driver.value().check(driver.value().device_get_count(&count), "cuda: number of devices");
  if (!status.ok()) return status;
  if (device < 0 || device >= count) {
    return Status::invalid("device: cuda:" + std::to_string(device) + "; " + std::to_string(count) +
                           " CUDA devices are here, numbered from 0; check the number and "
                           "CUDA_VISIBLE_DEVICES");
  }
  Capabilities all;
  all.device = {Device::Kind::cuda, device};
  int major = 0, minor = 0, shared_bytes = 0;
  for (const auto& [which, value] : {std::pair{compute_capability_major, &major},
                                     {compute_capability_minor, &minor},
                                     {multiprocessor_count, &all.multiprocessors},
                                     {max_shared_memory_per_block_optin, &shared_bytes}}) {
    const Result<int> read = attribute(driver.value(), which, device);
    if (!read.ok()) return read.status();
    *value = read.value();
  }
  all.sm = 10 * major + minor;
  all.shared_bytes = shared_bytes;
  if (all.sm < oldest_sm) {
    return Status{Code::not_supported, "device: cuda:" + std::to_string(device) +
                                           " has compute capability " + std::to_string(major) +
                                           "." + std::to_string(minor) +
                                           "; 8.0 and newer are supported; copy the tensors to "
                                           "host memory"};
  }
  return all;
}

}  // namespace

Result<Capabilities> cuda_capabilities(int device) {
  static std::mutex mutex;
  static std::map<int, Capabilities> known;
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(device); found != known.end()) return found->second;
  Result<Capabilities> asked = ask_capabilities(device);
  if (asked.ok()) known[device] = asked.value();
  return asked;
}

namespace cuda {
namespace {

// Retained once per device and kept: releasing it could destroy what others still use.
Result<Context> primary_context(const Driver& driver, int device) {
  static std::mutex mutex;
  static std::map<int, Context> retained;
  const std::lock_guard lock(mutex);
  if (const auto found = retained.find(device); found != retained.end()) return found->second;
  DeviceId id = 0;
  Context context = nullptr;
  Status status = driver.check(driver.device_get(&id, device), "cuda: device");
  if (!status.ok()) return status;
  status = driver.check(driver.primary_context_retain(&context, id), "cuda: primary context");
  if (!status.ok()) return status;
  retained[device] = context;
  return context;
}

bool is_current(const Driver& driver, int device) {
  Context current = nullptr;
  DeviceId of_current = 0, wanted = 0;
  return driver.context_get_current(&current) == 0 && current != nullptr &&
         driver.context_get_device(&of_current) == 0 && driver.device_get(&wanted, device) == 0 &&
         of_current == wanted;
}

}  // namespace

std::string architecture(const Capabilities& capabilities) {
  return "sm_" + std::to_string(capabilities.sm) + (capabilities.sm == 90 ? "a" : "");
}

Result<Capabilities> capabilities_of(std::string_view name) {
  // Multiprocessors of the largest card, and the shared memory that CUDA's programming guide gives
  // a block by compute capability.
  struct Card {
    int sm, multiprocessors, shared_kib;
  };
  constexpr Card cards[] = {{80, 108, 163},  {86, 84, 99},   {87, 16, 163},
                            {89, 142, 99},   {90, 132, 227}, {100, 148, 227},
                            {103, 148, 227}, {120, 188, 99}, {121, 48, 99}};
  std::string known;
  for (const Card& card : cards) {
    Capabilities all;
    all.device = {Device::Kind::cuda, 0};
    all.sm = card.sm, all.multiprocessors = card.multiprocessors;
    all.shared_bytes = std::int64_t{card.shared_kib} << 10;
    if (architecture(all) == name) return all;
    known += (known.empty() ? "" : ", ") + architecture(all);
  }
  return Status::invalid("\"" + std::string(name) + "\"; " + known +
                         " are known; write one of these");
}

ContextScope::ContextScope(const Driver& driver, int device) : driver_(driver) {
  if (is_current(driver, device)) return;
  const Result<Context> primary = primary_context(driver, device);
  status_ = primary.ok() ? driver.check(driver.context_push(primary.value()), "cuda: context")
                         : primary.status();
  pushed_ = status_.ok();
}

ContextScope::~ContextScope() {
  Context popped = nullptr;
  if (pushed_) driver_.context_pop(&popped);
}

}  // namespace cuda
}  // namespace onepass
