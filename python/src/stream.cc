#include "stream.h"

#include <cstdint>
#include <string>

#include "onepass/status.h"

namespace onepass::python {
namespace {

// What holds the handle, as an int: torch.cuda.Stream, cupy.cuda.Stream, cuda.core's protocol.
nb::object handle_of(nb::handle stream) {
  if (PyIndex_Check(stream.ptr()) && !PyBool_Check(stream.ptr())) return nb::borrow(stream);
  if (nb::hasattr(stream, "cuda_stream")) return stream.attr("cuda_stream");
  if (nb::hasattr(stream, "__cuda_stream__")) return stream.attr("__cuda_stream__")()[1];
  if (nb::hasattr(stream, "ptr")) return stream.attr("ptr");
  throw Error(Status::type_error("stream: found " + kind_of(stream) +
                                 "; an int, or a stream of CuPy or PyTorch, is allowed; pass one, "
                                 "or leave it out for the current one"));
}

nb::object current_stream(const Array& q) {
  const nb::object package = package_of(q.object);
  if (!nb::hasattr(package, "cuda")) return nb::int_(0);
  const nb::object cuda = package.attr("cuda");
  if (nb::hasattr(cuda, "current_stream")) {  // PyTorch
    return cuda.attr("current_stream")(q.view.device.index);
  }
  if (nb::hasattr(cuda, "get_current_stream")) return cuda.attr("get_current_stream")();  // CuPy
  return nb::int_(0);
}

}  // namespace

void* read_stream(nb::handle stream, const Array& q) {
  if (q.view.device.kind == Device::Kind::cpu) return nullptr;
  const nb::object handle = handle_of(stream.is_none() ? current_stream(q) : nb::borrow(stream));
  const nb::object number = nb::steal(PyNumber_Index(handle.ptr()));
  std::uint64_t value = 0;
  if (!number.is_valid()) throw nb::python_error();
  if (!nb::try_cast(number, value)) {
    throw Error(Status::invalid(std::string("stream: ") + nb::str(number).c_str() +
                                "; the handle of a stream is allowed; pass stream.cuda_stream or "
                                "stream.ptr"));
  }
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(value));
}

}  // namespace onepass::python
