// Python arrays seen as TensorViews, and new arrays of the kind a call was given.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <span>
#include <string>

#include "onepass/tensor.h"

namespace onepass::python {

namespace nb = nanobind;

/// An array of the caller's, kept alive with its view. No copy: any strides, also 0 or negative.
struct Array {
  nb::object object;  // not valid when the argument was None
  nb::object owner;   // what exports the memory
  TensorView view;    // not given() when the argument was None
};

/// Anything with `__dlpack__` or the buffer protocol, and NumPy arrays of ml_dtypes.bfloat16.
/// Throws onepass::Error, which names the argument, for everything else.
Array read_array(const std::string& argument, nb::handle object);
/// The same for an array that will be written: refuses one that is read-only.
Array write_array(const std::string& argument, nb::handle object);
/// As the two above, with None for "not given".
Array read_optional(const std::string& argument, nb::handle object);

/// The shape, dtype and device of an array that need not exist: enough for a plan.
TensorView imagine(DType dtype, std::span<const std::int64_t> shape, Device device);

/// The package that an object's type comes from: torch, cupy, numpy.
nb::object package_of(nb::handle object);
/// "ndarray of int8": what a message says of an object.
std::string kind_of(nb::handle object);

/// A new contiguous array of the same kind as `like`: NumPy, PyTorch, on a GPU what the `empty` of
/// its package makes (CuPy), or memory that finish() hands
/// to the array library that `like` came from.
Array make_like(const Array& like, DType dtype, std::span<const std::int64_t> shape);
/// The array as the caller sees it, once it is filled.
nb::object finish(const Array& like, const Array& made);

/// "float32", numpy.float32, numpy.dtype("float32") or torch.float32.
DType read_dtype(const std::string& argument, nb::handle object);

}  // namespace onepass::python
