// The options of a call, as the library and as the reference take them.
#pragma once

#include <deque>
#include <vector>

#include "conformance/call.h"
#include "reference/attention.h"

namespace onepass::conformance {

/// Keeps the arrays that the library's options point to.
class LibraryOptions {
 public:
  explicit LibraryOptions(const Call& call);

  Attention options;

 private:
  TensorView keep(DType dtype, const std::vector<std::int64_t>& shape,
                  const std::vector<double>& values);
  TensorView integers(DType dtype, const std::vector<std::int64_t>& values);
  std::optional<Start> start(const std::vector<std::int64_t>& given, DType dtype);

  std::deque<Storage> kept_;
};

reference::Options reference_options(const Call& call);

/// The dtype of lse, of sinks and of array gradients.
DType wide(DType dtype);

}  // namespace onepass::conformance
