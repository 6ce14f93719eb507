#include "cli/parts/array.h"

#include <cstdlib>
#include <new>
#include <string>

#include "cli/parts/memory.h"
#include "onepass/status.h"

namespace onepass::cli {
namespace {

// Smaller arrays are not worth asking the system for.
constexpr std::int64_t large_bytes = 1 << 26;

}  // namespace

std::int64_t checked_bytes(DType dtype, std::span<const std::int64_t> shape) {
  std::int64_t bytes = size_bytes(dtype);
  bool empty = false;
  for (const std::int64_t size : shape) {
    if (size < 0) return -1;
    empty = empty || size == 0;
    // Sizes beside a 0 must fit too: strides are made of them.
    if (size > 0 && __builtin_mul_overflow(bytes, size, &bytes)) return -1;
  }
  return empty ? 0 : bytes;
}

Array zeros(DType dtype, std::span<const std::int64_t> shape) {
  Array array{nullptr, TensorView(nullptr, dtype, shape, {})};
  const std::int64_t bytes = checked_bytes(dtype, shape);
  // The system promises more than it has, and ends programs that use what it promised.
  if (bytes < 0 || bytes > large_bytes) {
    double needed = size_bytes(dtype);
    for (const std::int64_t size : shape) needed *= static_cast<double>(size);
    require_memory(array.view.describe(), needed);
  }
  if (bytes >= 0) {
    // calloc's pages cost nothing until they are touched; 64 extra bytes make room to align.
    const auto size = static_cast<std::size_t>(bytes) + 64;
    array.memory = std::shared_ptr<void>(std::calloc(size, 1), &std::free);
  }
  if (array.memory == nullptr) {
    throw Error({Code::runtime_error, "memory: none for " + array.view.describe() +
                                          "; arrays that fit this machine are allowed; use smaller "
                                          "sizes or free some"});
  }
  const auto address = reinterpret_cast<std::uintptr_t>(array.memory.get());
  array.view.data = reinterpret_cast<void*>((address + 63) / 64 * 64);
  return array;
}

}  // namespace onepass::cli
