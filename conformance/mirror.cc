#include "conformance/mirror.h"

#include <dlfcn.h>

#include <string>

#include "onepass/plan.h"

namespace onepass::conformance {
namespace {

// Calls a function of the CUDA driver by its name in the driver's ABI.
template <class... Arguments>
void call(const char* name, Arguments... arguments) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  using Function = int(Arguments...);
  auto* const function =
      library == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library, name));
  const int result = function == nullptr ? -1 : function(arguments...);
  if (result == 0) return;
  throw Error({Code::runtime_error,
               std::string("device: ") + name + " gives CUDA error " + std::to_string(result) +
                   "; a device free of errors with memory left is needed; use smaller sizes, or "
                   "look for an earlier failure on it"});
}

// A view's first byte and the one after its last; nothing where it has no element.
std::pair<std::int64_t, std::int64_t> reach(const TensorView& view) {
  std::int64_t below = 0, above = size_bytes(view.dtype);
  if (view.elements() == 0) return {0, 0};
  for (std::size_t dim = 0; dim < static_cast<std::size_t>(view.rank); ++dim) {
    const std::int64_t bytes = (view.shape[dim] - 1) * view.strides[dim] * size_bytes(view.dtype);
    (bytes < 0 ? below : above) += bytes;
  }
  return {below, above};
}

}  // namespace

Mirror::Mirror(Device device, std::size_t guard_bytes)
    : device_(device), guard_bytes_(guard_bytes) {
  if (device_.kind == Device::Kind::cpu) return;
  const Status here = cuda_capabilities(device_.index).status();  // starts the driver
  if (!here.ok()) throw Error(here);
  int id = 0;
  void* context = nullptr;
  call("cuDeviceGet", &id, device_.index);
  call("cuDevicePrimaryCtxRetain", &context, id);
  call("cuCtxPushCurrent_v2", context);
}

Mirror::~Mirror() {
  if (device_.kind == Device::Kind::cpu) return;
  try {
    for (const auto& [range, address] : copies_) call("cuMemFree_v2", address);
    for (void* const event : events_) {
      if (event != nullptr) call("cuEventDestroy_v2", event);
    }
    void* popped = nullptr;
    call("cuCtxPopCurrent_v2", &popped);
  } catch (const Error&) {  // the device has failed, and whoever used it has been told
  }
}

TensorView Mirror::of(const TensorView& host) {
  if (device_.kind == Device::Kind::cpu || !host.given()) return host;
  TensorView view = host;
  view.device = device_;
  if (host.data == nullptr) return view;
  const auto [below, above] = reach(host);
  auto* const first = static_cast<std::byte*>(host.data) + below - guard_bytes_;
  auto* const end = static_cast<std::byte*>(host.data) + above + guard_bytes_;
  const auto [copy, is_new] = copies_.try_emplace({first, end}, 0ULL);
  const auto bytes = static_cast<std::size_t>(end - first);
  if (is_new) {
    call("cuMemAlloc_v2", &copy->second, bytes + 1);  // never empty
    if (bytes > 0) call("cuMemcpyHtoD_v2", copy->second, static_cast<const void*>(first), bytes);
  }
  const auto offset = static_cast<std::byte*>(host.data) - first;
  view.data = reinterpret_cast<void*>(static_cast<std::uintptr_t>(copy->second) +
                                      static_cast<std::uintptr_t>(offset));
  return view;
}

void Mirror::take(Attention& options) {
  options.sink = of(options.sink), options.lse = of(options.lse);
  for (Argument& argument : options.args) {
    if (auto* const array = std::get_if<TensorView>(&argument.value)) *array = of(*array);
  }
}

void Mirror::wait() {
  if (device_.kind == Device::Kind::cuda) call("cuCtxSynchronize");
}

void Mirror::fetch() {
  wait();
  for (const auto& [range, address] : copies_) {
    const auto bytes = static_cast<std::size_t>(range.second - range.first);
    if (bytes > 0) call("cuMemcpyDtoH_v2", static_cast<void*>(range.first), address, bytes);
  }
}

double Mirror::seconds_of(const std::function<void()>& work) {
  for (void*& event : events_) {
    if (event == nullptr) call("cuEventCreate", &event, 0U);
  }
  void* const stream = nullptr;
  call("cuEventRecord", events_[0], stream);
  work();
  call("cuEventRecord", events_[1], stream);
  wait();
  float milliseconds = 0.0f;
  call("cuEventElapsedTime", &milliseconds, events_[0], events_[1]);
  return milliseconds * 1e-3;
}

}  // namespace onepass::conformance
