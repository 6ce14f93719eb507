#include "cuda/stream_memory.h"

#include <map>
#include <mutex>

#include "cuda/device.h"

namespace onepass::cuda {
namespace {

// CUmemPoolProps.
struct PoolProperties {
  int allocation = 1;  // pinned: memory of a device
  int handles = 0;
  int location = 1, location_id = 0;  // a device and its number
  void* security = nullptr;
  std::size_t most_bytes = 0;
  unsigned short usage = 0;
  unsigned char reserved[54] = {};
};
static_assert(sizeof(PoolProperties) == 88);

// CUmemPool_attribute.
constexpr int release_threshold = 4;

// One a device, never destroyed.
Result<MemoryPool> pool_of(const Driver& driver, int device) {
  static std::mutex mutex;
  static std::map<int, MemoryPool> pools;
  const std::lock_guard lock(mutex);
  if (const auto found = pools.find(device); found != pools.end()) return found->second;
  PoolProperties properties;
  properties.location_id = device;
  MemoryPool pool = nullptr;
  Status status = driver.check(driver.pool_create(&pool, &properties), "cuda: memory pool");
  if (!status.ok()) return status;
  std::uint64_t keep_all = ~std::uint64_t{0};
  status = driver.check(driver.pool_set_attribute(pool, release_threshold, &keep_all),
                        "cuda: memory pool");
  if (!status.ok()) return status;
  pools[device] = pool;
  return pool;
}

}  // namespace

Status prepare_memory(int device) {
  const Result<Driver>& driver = cuda::driver();
  if (!driver.ok()) return driver.status();
  const ContextScope context(driver.value(), device);
  if (!context.status().ok()) return context.status();
  return pool_of(driver.value(), device).status();
}

Result<void*> take(std::int64_t bytes, int device, void* stream) {
  const Result<Driver>& driver = cuda::driver();
  if (!driver.ok()) return driver.status();
  const ContextScope context(driver.value(), device);
  if (!context.status().ok()) return context.status();
  const Result<MemoryPool> pool = pool_of(driver.value(), device);
  if (!pool.ok()) return pool.status();
  DeviceAddress address = 0;
  const Status status = driver.value().check(
      driver.value().memory_take(&address, static_cast<std::size_t>(bytes), pool.value(), stream),
      "cuda: memory");
  if (!status.ok()) return status;
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}

void give_back(void* memory, int device, void* stream) {
  const ContextScope context(driver().value(), device);
  driver().value().memory_give_back(reinterpret_cast<std::uintptr_t>(memory), stream);
}

}  // namespace onepass::cuda
