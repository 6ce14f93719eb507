// The CUDA stream of a call: what the caller says, else the current one of the arrays' library.
#pragma once

#include "arrays.h"

namespace onepass::python {

/// `stream`: None, the handle as an int, or an object of CuPy or PyTorch, or with
/// ``__cuda_stream__``. Null on the CPU, and where nothing is said and the library has no notion of
/// it. Throws onepass::Error.
void* read_stream(nb::handle stream, const Array& q);

}  // namespace onepass::python
