// The library's merge of two partial results on guarded memory.
#pragma once

#include <vector>

#include "conformance/checker.h"

namespace onepass::conformance {

struct Part {
  std::vector<double> o, lse;
};

/// merge(a, b) with the shapes of `call`'s outputs; o in `dtype`, lse in float32 or float64.
Part merged(Checker& checker, const Call& call, DType dtype, const Part& a, const Part& b);

}  // namespace onepass::conformance
