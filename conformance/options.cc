#include "conformance/options.h"

namespace onepass::conformance {
namespace {

reference::Argument reference_argument(const NamedArgument& argument) {
  const auto* array = std::get_if<NamedArray>(&argument.value);
  if (array == nullptr) {
    if (const auto* flag = std::get_if<bool>(&argument.value)) return {argument.name, *flag};
    if (const auto* integer = std::get_if<std::int64_t>(&argument.value)) {
      return {argument.name, *integer};
    }
    return {argument.name, std::get<double>(argument.value)};
  }
  reference::Array out;
  out.shape = array->shape;
  if (is_float(array->dtype)) {
    for (const double value : array->values) out.reals.push_back(rounded(array->dtype, value));
    return {argument.name, out};
  }
  out.type = array->dtype == DType::boolean ? reference::Type::boolean : reference::Type::integer;
  for (const double value : array->values) {
    out.integers.push_back(static_cast<std::int64_t>(value));
  }
  return {argument.name, out};
}

}  // namespace

DType wide(DType dtype) { return dtype == DType::float64 ? DType::float64 : DType::float32; }

LibraryOptions::LibraryOptions(const Call& call) {
  options.mask = call.mask, options.score = call.score, options.definitions = call.definitions;
  options.scale = call.scale, options.dropout = call.dropout;
  options.align = call.top_left ? Align::top_left : Align::bottom_right;
  for (const NamedArgument& argument : call.arguments) {
    if (const auto* array = std::get_if<NamedArray>(&argument.value)) {
      options.args.push_back({argument.name, keep(array->dtype, array->shape, array->values)});
    } else if (const auto* flag = std::get_if<bool>(&argument.value)) {
      options.args.push_back({argument.name, *flag});
    } else if (const auto* integer = std::get_if<std::int64_t>(&argument.value)) {
      options.args.push_back({argument.name, *integer});
    } else {
      options.args.push_back({argument.name, std::get<double>(argument.value)});
    }
  }
  if (!call.sink.empty()) {
    options.sink = keep(wide(call.dtype), {static_cast<std::int64_t>(call.sink.size())}, call.sink);
  }
  options.q_start = start(call.q_start, DType::int32);
  options.k_start = start(call.k_start, DType::int64);
  options.cu_seqlens_q = integers(DType::int32, call.cu_seqlens_q);
  options.cu_seqlens_k = integers(DType::int64, call.cu_seqlens_k);
  options.seqused_k = integers(DType::int32, call.seqused_k);
}

TensorView LibraryOptions::keep(DType dtype, const std::vector<std::int64_t>& shape,
                                const std::vector<double>& values) {
  kept_.emplace_back(dtype, shape).write(values);
  return kept_.back().view();
}

TensorView LibraryOptions::integers(DType dtype, const std::vector<std::int64_t>& values) {
  if (values.empty()) return {};
  return keep(dtype, {static_cast<std::int64_t>(values.size())},
              std::vector<double>(values.begin(), values.end()));
}

std::optional<Start> LibraryOptions::start(const std::vector<std::int64_t>& given, DType dtype) {
  if (given.empty()) return std::nullopt;
  if (given.size() == 1) return given[0];
  return integers(dtype, given);
}

reference::Options reference_options(const Call& call) {
  reference::Options options;
  options.mask = call.mask, options.score = call.score, options.definitions = call.definitions;
  options.scale = call.scale, options.top_left = call.top_left;
  for (const double logit : call.sink) options.sink.push_back(rounded(wide(call.dtype), logit));
  options.q_start = call.q_start, options.k_start = call.k_start;
  options.cu_seqlens_q = call.cu_seqlens_q, options.cu_seqlens_k = call.cu_seqlens_k;
  options.seqused_k = call.seqused_k;
  const Dropout& dropout = call.dropout;
  options.dropout = {dropout.p, dropout.seed, dropout.offset, dropout.row0, dropout.col0};
  for (const NamedArgument& argument : call.arguments) {
    options.arguments.push_back(reference_argument(argument));
  }
  return options;
}

}  // namespace onepass::conformance
