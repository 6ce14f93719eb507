#include "onepass/tensor.h"

#include <algorithm>
#include <utility>

#include "onepass/status.h"

namespace onepass {

std::int64_t size_bytes(DType dtype) {
  switch (dtype) {
    case DType::float64:
    case DType::int64:
      return 8;
    case DType::float32:
    case DType::int32:
      return 4;
    case DType::bfloat16:
    case DType::float16:
      return 2;
    case DType::uint8:
    case DType::boolean:
      return 1;
  }
  return 0;
}

const char* name(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return "float64";
    case DType::float32:
      return "float32";
    case DType::bfloat16:
      return "bfloat16";
    case DType::float16:
      return "float16";
    case DType::int64:
      return "int64";
    case DType::int32:
      return "int32";
    case DType::uint8:
      return "uint8";
    case DType::boolean:
      return "bool";
  }
  return "unknown";
}

bool is_float(DType dtype) {
  return dtype == DType::float64 || dtype == DType::float32 || dtype == DType::bfloat16 ||
         dtype == DType::float16;
}

TensorView::TensorView(const void* data_, DType dtype_, std::span<const std::int64_t> shape_,
                       std::span<const std::int64_t> strides_, Device device_)
    : data(const_cast<void*>(data_)), dtype(dtype_), device(device_) {
  if (shape_.size() > max_rank || (!strides_.empty() && strides_.size() != shape_.size())) {
    throw Error(Status::invalid(
        "tensor: " + std::to_string(shape_.size()) + " dims and " +
        std::to_string(strides_.size()) + " strides; at most " + std::to_string(max_rank) +
        " dims, with one stride for each or none at all; reshape or pass matching strides"));
  }
  rank = static_cast<int>(shape_.size());
  std::copy(shape_.begin(), shape_.end(), shape.begin());
  if (!strides_.empty()) {
    std::copy(strides_.begin(), strides_.end(), strides.begin());
    return;
  }
  std::int64_t step = 1;
  for (int dim = rank - 1; dim >= 0; --dim) {
    strides[dim] = step;
    // A dim of size 0 makes the view empty; 1 keeps the outer strides meaningful. Sizes whose
    // product does not fit are refused by validate, so wrapping here is harmless.
    step = static_cast<std::int64_t>(
        static_cast<std::uint64_t>(step) *
        static_cast<std::uint64_t>(std::max<std::int64_t>(shape[dim], 1)));
  }
}

TensorView::TensorView(const void* data_, DType dtype_, std::initializer_list<std::int64_t> shape_,
                       Device device_)
    : TensorView(data_, dtype_, std::span(shape_.begin(), shape_.size()), {}, device_) {}

std::int64_t TensorView::elements() const {
  if (!given()) return 0;
  std::int64_t count = 1;
  for (int dim = 0; dim < rank; ++dim) count *= shape[dim];
  return count;
}

TensorView TensorView::transposed(int dim0, int dim1) const {
  TensorView view = *this;
  std::swap(view.shape.at(dim0), view.shape.at(dim1));
  std::swap(view.strides.at(dim0), view.strides.at(dim1));
  return view;
}

std::string TensorView::describe() const {
  if (!given()) return "nothing";
  std::string text = name(dtype);
  text += '[';
  for (int dim = 0; dim < rank; ++dim) {
    if (dim > 0) text += ", ";
    text += std::to_string(shape[dim]);
  }
  return text + ']';
}

}  // namespace onepass
