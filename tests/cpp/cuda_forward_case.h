// A forward call on the GPU beside the CPU in float64 on the same values.
#pragma once

#include <string>
#include <vector>

#include "cpu_case.h"

namespace onepass::cuda_test {

/// Array arguments of a call: name, values, shape.
struct Values {
  std::string name;
  std::vector<float> values;
  std::vector<std::int64_t> shape;
};

/// Runs it through attention(); outputs start as NaN, and bytes after them must stay.
void run_on_gpu(cpu_test::Call& call, const std::vector<Values>& arrays = {});

/// The same call on the CPU in float64.
cpu_test::Call wide_of(const cpu_test::Call& call, const std::vector<Values>& arrays = {});

/// The call in this dtype gives o and lse as the CPU in float64 does. An out_dtype of float64
/// stands for a float32 output.
void expect_right(const cpu_test::Case& given, DType dtype, const std::vector<Values>& arrays = {});

/// The kernel `name` takes the call in this dtype, and gives it right.
void expect_right_by(const char* name, const cpu_test::Case& given, DType dtype,
                     const std::vector<Values>& arrays = {});

/// In float32, bfloat16 and float16.
void expect_right(const cpu_test::Case& given, const std::vector<Values>& arrays = {});

}  // namespace onepass::cuda_test
