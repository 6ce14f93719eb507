#include "core/check.h"

#include <algorithm>
#include <cstdlib>
#include <string>

namespace onepass::check {
namespace {

std::string start(std::string_view argument) { return std::string(argument) + ": "; }

std::string place(const Device& device) {
  return device.kind == Device::Kind::cpu ? "the CPU" : "cuda:" + std::to_string(device.index);
}

// The farthest byte offset in either direction fits int64.
bool addressable(const TensorView& view) {
  std::int64_t count = 1, reach = 0;
  for (int dim = 0; dim < view.rank; ++dim) {
    const std::int64_t size = std::max<std::int64_t>(view.shape[dim], 1);
    std::int64_t span = 0;
    if (view.strides[dim] == INT64_MIN) return false;
    if (__builtin_mul_overflow(count, size, &count)) return false;
    if (__builtin_mul_overflow(size - 1, std::abs(view.strides[dim]), &span)) return false;
    if (__builtin_add_overflow(reach, span, &reach)) return false;
  }
  std::int64_t bytes = 0;
  return !__builtin_mul_overflow(count, std::int64_t{8}, &bytes) &&
         !__builtin_mul_overflow(reach, std::int64_t{8}, &bytes);
}

}  // namespace

Status tensor(std::string_view argument, const TensorView& view, int rank, std::string_view dims,
              Device device) {
  const std::string head = start(argument);
  if (!view.given()) {
    return Status::invalid(head + "not given; a tensor of shape " + std::string(dims) +
                           " is needed; pass one");
  }
  if (view.rank != rank) {
    return Status::invalid(head + view.describe() + " has " + std::to_string(view.rank) +
                           " dims; exactly " + std::to_string(rank) + ", " + std::string(dims) +
                           ", are allowed; reshape it");
  }
  for (int dim = 0; dim < rank; ++dim) {
    if (view.shape[dim] < 0) {
      return Status::invalid(head + "size " + std::to_string(view.shape[dim]) + " in dim " +
                             std::to_string(dim) + "; sizes are 0 or more; pass the real shape");
    }
  }
  if (!addressable(view)) {
    return Status::invalid(
        head + view.describe() +
        " with its strides reaches beyond 64-bit offsets; every byte offset must "
        "fit int64; check shape and strides");
  }
  if (view.device != device) {
    return {Code::not_supported, head + "lies on " + place(view.device) + "; " + place(device) +
                                     " is needed here; copy it there"};
  }
  return {};
}

Status memory(std::string_view argument, const TensorView& view) {
  if (!view.given() || view.data != nullptr || view.elements() == 0) return {};
  return Status::invalid(start(argument) + "null pointer for " + view.describe() +
                         "; memory is needed unless a size is 0; pass the data's address");
}

Status dtype(std::string_view argument, const TensorView& view,
             std::initializer_list<DType> allowed, std::string_view try_this) {
  if (std::find(allowed.begin(), allowed.end(), view.dtype) != allowed.end()) return {};
  std::string message = start(argument) + "dtype " + name(view.dtype) + "; allowed:";
  for (const DType* one = allowed.begin(); one != allowed.end(); ++one) {
    if (std::find(allowed.begin(), one, *one) == one) message += std::string(" ") + name(*one);
  }
  return Status::type_error(message + "; " + std::string(try_this));
}

Status shape(std::string_view argument, const TensorView& view,
             std::initializer_list<std::int64_t> wanted, std::string_view dims) {
  if (std::equal(wanted.begin(), wanted.end(), view.shape.begin(),
                 view.shape.begin() + view.rank)) {
    return {};
  }
  TensorView want = view;
  std::copy(wanted.begin(), wanted.end(), want.shape.begin());
  return Status::invalid(start(argument) + view.describe() + "; " + std::string(dims) + " = " +
                         want.describe() + " is needed; check the order of the dims");
}

Status writable(std::string_view argument, const TensorView& view) {
  if (view.elements() == 0) return {};
  for (int dim = 0; dim < view.rank; ++dim) {
    if (view.shape[dim] > 1 && view.strides[dim] == 0) {
      return Status::invalid(start(argument) + "stride 0 in dim " + std::to_string(dim) +
                             " of size " + std::to_string(view.shape[dim]) +
                             "; an output needs memory of its own for each element; allocate it in "
                             "full");
    }
  }
  return {};
}

Status dropout(const Dropout& dropout) {
  if (!(dropout.p >= 0.0 && dropout.p < 1.0)) {
    return Status::invalid("dropout: p = " + std::to_string(dropout.p) +
                           "; 0 <= p < 1 is allowed; pass the share of weights to drop");
  }
  for (const auto& [argument, origin] : {std::pair{"row0", dropout.row0}, {"col0", dropout.col0}}) {
    constexpr std::int64_t largest = std::int64_t{1} << 60;
    if (origin < 0 || origin > largest || origin % 16 != 0) {
      return Status::invalid(std::string("dropout: ") + argument + " = " + std::to_string(origin) +
                             "; multiples of 16 from 0 to 2^60 are allowed; cut chunks there");
    }
  }
  return {};
}

}  // namespace onepass::check
