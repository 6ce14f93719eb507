// NPY files (NumPy's array format) through xtensor's reader and writer, which see only what has
// been checked: its own reader trusts magic-looking files, header keys and sizes.
#pragma once

#include <string>
#include <string_view>

#include "cli/parts/array.h"
#include "onepass/status.h"

namespace onepass::cli {

/// Reads a file of at most 4 dims; Fortran order becomes strides. Messages begin with the path.
Result<Array> read_npy(const std::string& path);

/// The same from memory.
Result<Array> parse_npy(std::string_view bytes);

/// The file of a contiguous view. bfloat16 is written as ml_dtypes does ('<V2').
std::string npy_bytes(const TensorView& view);

}  // namespace onepass::cli
