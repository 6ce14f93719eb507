#include "cli/parts/reference_call.h"

#include <array>

#include "cli/parts/array.h"
#include "cli/parts/convert.h"

namespace onepass::cli {
namespace {

std::vector<std::int64_t> integers_of(const TensorView& view) {
  std::vector<std::int64_t> integers;
  if (!view.given()) return integers;
  const Array contiguous = converted(view, view.dtype);
  for (std::int64_t i = 0; i < view.elements(); ++i) {
    integers.push_back(view.dtype == DType::int64
                           ? contiguous.data<const std::int64_t>()[i]
                           : static_cast<std::int64_t>(load(view.dtype, contiguous.view.data, i)));
  }
  return integers;
}

reference::Array array_of(const TensorView& view) {
  reference::Array array;
  array.shape.assign(view.shape.begin(), view.shape.begin() + view.rank);
  if (is_float(view.dtype)) {
    const Array doubles = converted(view, DType::float64);
    const auto* data = doubles.data<const double>();
    array.reals.assign(data, data + view.elements());
    array.type = reference::Type::real;
  } else {
    array.integers = integers_of(view);
    array.type = view.dtype == DType::boolean ? reference::Type::boolean : reference::Type::integer;
  }
  return array;
}

std::vector<std::int64_t> starts_of(const std::optional<Start>& start) {
  if (!start) return {};
  if (const auto* number = std::get_if<std::int64_t>(&*start)) return {*number};
  return integers_of(std::get<TensorView>(*start));
}

}  // namespace

reference::Tensor reference_tensor(const TensorView& view) {
  const Array doubles = converted(view, DType::float64);
  const auto* data = doubles.data<const double>();
  std::array<std::int64_t, 4> shape = view.shape;
  if (view.rank == 3) shape = {1, view.shape[0], view.shape[1], view.shape[2]};  // packed
  return {shape, std::vector<double>(data, data + view.elements())};
}

reference::Options reference_options(const Attention& options) {
  reference::Options result;
  result.mask = options.mask;
  result.score = options.score;
  result.definitions = options.definitions;
  result.scale = options.scale;
  const Dropout& dropout = options.dropout;
  result.dropout = {dropout.p, dropout.seed, dropout.offset, dropout.row0, dropout.col0};
  result.top_left = options.align == Align::top_left;
  result.q_start = starts_of(options.q_start);
  result.k_start = starts_of(options.k_start);
  result.cu_seqlens_q = integers_of(options.cu_seqlens_q);
  result.cu_seqlens_k = integers_of(options.cu_seqlens_k);
  result.seqused_k = integers_of(options.seqused_k);
  if (options.sink.given()) result.sink = array_of(options.sink).reals;
  for (const Argument& argument : options.args) {
    reference::Argument& copy = result.arguments.emplace_back();
    copy.name = argument.name;
    std::visit(
        [&copy](const auto& value) {
          if constexpr (std::is_same_v<std::decay_t<decltype(value)>, TensorView>) {
            copy.value = array_of(value);
          } else {
            copy.value = value;
          }
        },
        argument.value);
  }
  return result;
}

}  // namespace onepass::cli
