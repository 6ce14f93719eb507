// The text header of NumPy's NPY files: a Python dict of descr, fortran_order and shape.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "onepass/status.h"
#include "onepass/tensor.h"

namespace onepass::cli {

struct NpyHeader {
  DType dtype = DType::float32;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

/// Reads the dict (keys in any order; numpy.lib.format says what it may hold). Little-endian f2 f4
/// f8 i4 i8, u1, b1 and bfloat16 as ml_dtypes writes it ('<V2'), 0 to 4 dims.
Result<NpyHeader> parse_npy_header(std::string_view text);

}  // namespace onepass::cli
