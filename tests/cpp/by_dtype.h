// A bound for each float dtype, such as the error that a test allows.
#pragma once

#include "onepass/tensor.h"

namespace onepass::cpu_test {

struct ByDType {
  double float64, float32, bfloat16, float16;

  constexpr double operator()(DType dtype) const {
    return dtype == DType::float64    ? float64
           : dtype == DType::float32  ? float32
           : dtype == DType::bfloat16 ? bfloat16
                                      : float16;
  }
};

}  // namespace onepass::cpu_test
