#include "api/c_structs.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string>

namespace onepass {
namespace {

/// The caller's struct as this library knows it: what an older header lacks keeps its default.
template <class T>
T known(const char* argument, const T* given, const T& defaults) {
  T result = defaults;
  if (given == nullptr) return result;
  if (given->size < sizeof(std::size_t) || given->size > 16 * sizeof(T)) {
    throw Error(Status::invalid(std::string(argument) + ": size field " +
                                std::to_string(given->size) + "; " + std::to_string(sizeof(T)) +
                                " is what this library knows; fill it with its _init function"));
  }
  std::memcpy(&result, given, std::min(given->size, sizeof(T)));
  return result;
}

onepass_tensor no_tensor() {
  onepass_tensor tensor{};
  tensor.size = sizeof tensor;
  tensor.rank = -1;
  return tensor;
}

TensorView view_of(const char* argument, const onepass_tensor& t) {
  if (t.rank < 0) return {};
  if (t.rank > max_rank || t.dtype < ONEPASS_FLOAT64 || t.dtype > ONEPASS_BOOL ||
      (t.device != ONEPASS_CPU && t.device != ONEPASS_CUDA)) {
    throw Error(Status::invalid(std::string(argument) + ": rank " + std::to_string(t.rank) +
                                ", dtype " + std::to_string(t.dtype) + ", device " +
                                std::to_string(t.device) +
                                "; rank 0 to 4, an onepass_dtype and an onepass_device are "
                                "allowed; fill it with onepass_tensor_init"));
  }
  const auto rank = static_cast<std::size_t>(t.rank);
  return TensorView(t.data, static_cast<DType>(t.dtype), std::span(t.shape, rank),
                    std::span(t.strides, rank),
                    {static_cast<Device::Kind>(t.device), t.device_index});
}

/// Reads a list of the caller's structs.
template <class T, class Read>
void for_each(const char* argument, const T* list, std::int64_t count, const Read& read) {
  if (count < 0 || (count > 0 && list == nullptr)) {
    throw Error(Status::invalid(std::string(argument) + ": " + std::to_string(count) +
                                " with a null or missing list; a count that fits the list is "
                                "allowed; set both"));
  }
  // The caller's elements may be smaller or larger than ours: their own size is the step.
  const char* next = reinterpret_cast<const char*>(list);
  for (std::int64_t i = 0; i < count; ++i) {
    const T& element = *reinterpret_cast<const T*>(next);
    read(element);
    next += element.size;
  }
}

Argument argument_of(const onepass_argument& given) {
  onepass_argument defaults{};
  defaults.array = no_tensor();
  const onepass_argument a = known("arguments", &given, defaults);
  const std::string name = a.name ? a.name : "";
  switch (a.kind) {
    case ONEPASS_ARGUMENT_BOOL:
      return {name, a.integer != 0};
    case ONEPASS_ARGUMENT_INT:
      return {name, a.integer};
    case ONEPASS_ARGUMENT_FLOAT:
      return {name, a.real};
    case ONEPASS_ARGUMENT_ARRAY:
      return {name, view_of(name.c_str(), a.array)};
    default:
      throw Error(Status::invalid("arguments: kind " + std::to_string(a.kind) + " of '" + name +
                                  "'; an onepass_argument_kind is allowed; set it"));
  }
}

std::optional<Start> start_of(const char* argument, std::int32_t has_number, std::int64_t number,
                              const onepass_tensor& array) {
  if (array.rank >= 0) return view_of(argument, array);
  if (has_number != 0) return number;
  return std::nullopt;
}

}  // namespace

TensorView view_of(const char* argument, const onepass_tensor* tensor) {
  return view_of(argument, known(argument, tensor, no_tensor()));
}

Attention attention_of(const onepass_options* given) {
  onepass_options defaults;
  onepass_options_init(&defaults);
  const onepass_options o = known("options", given, defaults);
  Attention options;
  if (o.mask && *o.mask) options.mask = o.mask;
  if (o.score) options.score = o.score;
  if (o.definitions) options.definitions = o.definitions;
  for_each("arguments", o.arguments, o.argument_count, [&](const onepass_argument& argument) {
    options.args.push_back(argument_of(argument));
  });
  if (o.has_scale != 0) options.scale = o.scale;
  options.align = o.top_left != 0 ? Align::top_left : Align::bottom_right;
  options.sink = view_of("sink", o.sink);
  options.lse = view_of("lse", o.lse);
  options.q_start = start_of("q_start", o.has_q_start, o.q_start, o.q_start_array);
  options.k_start = start_of("k_start", o.has_k_start, o.k_start, o.k_start_array);
  options.cu_seqlens_q = view_of("cu_seqlens_q", o.cu_seqlens_q);
  options.cu_seqlens_k = view_of("cu_seqlens_k", o.cu_seqlens_k);
  options.seqused_k = view_of("seqused_k", o.seqused_k);
  options.dropout = {.p = o.dropout,
                     .seed = o.dropout_seed,
                     .offset = o.dropout_offset,
                     .row0 = o.dropout_row0,
                     .col0 = o.dropout_col0};
  return options;
}

Backward backward_of(const onepass_backward* given) {
  onepass_backward defaults;
  onepass_backward_init(&defaults);
  const onepass_backward g = known("backward", given, defaults);
  Backward backward;
  backward.o = view_of("o", g.o);
  backward.lse = view_of("lse", g.lse);
  backward.dout = view_of("dout", g.dout);
  backward.dlse = view_of("dlse", g.dlse);
  backward.dq = view_of("dq", g.dq);
  backward.dk = view_of("dk", g.dk);
  backward.dv = view_of("dv", g.dv);
  backward.dsink = view_of("dsink", g.dsink);
  const auto read = [&](const onepass_argument_gradient& element) {
    onepass_argument_gradient gradient_defaults;
    onepass_argument_gradient_init(&gradient_defaults, "");
    const auto gradient = known("argument_gradients", &element, gradient_defaults);
    const std::string name = gradient.name ? gradient.name : "";
    backward.dargs.push_back({name, view_of(name.c_str(), gradient.gradient)});
  };
  for_each("argument_gradients", g.argument_gradients, g.argument_gradient_count, read);
  return backward;
}

KvCache kv_cache_of(const onepass_kv_cache* given) {
  onepass_kv_cache defaults;
  onepass_kv_cache_init(&defaults);
  const onepass_kv_cache g = known("cache", given, defaults);
  return {.k = view_of("k", g.k),
          .v = view_of("v", g.v),
          .seqlens = view_of("seqlens", g.seqlens),
          .block_table = view_of("block_table", g.block_table),
          .batch_idx = view_of("batch_idx", g.batch_idx),
          .k_new = view_of("k_new", g.k_new),
          .v_new = view_of("v_new", g.v_new),
          .rotary = {.cos = view_of("rotary_cos", g.rotary_cos),
                     .sin = view_of("rotary_sin", g.rotary_sin),
                     .interleaved = g.rotary_interleaved != 0}};
}

Exec exec_of(const onepass_exec* given) {
  onepass_exec defaults;
  onepass_exec_init(&defaults);
  const onepass_exec e = known("exec", given, defaults);
  return {.threads = e.threads,
          .workspace = e.workspace,
          .workspace_bytes = e.workspace_bytes,
          .stream = e.stream};
}

}  // namespace onepass

void onepass_options_init(onepass_options* options) {
  *options = onepass_options{};
  options->size = sizeof *options;
  for (onepass_tensor* tensor :
       {&options->sink, &options->lse, &options->q_start_array, &options->k_start_array,
        &options->cu_seqlens_q, &options->cu_seqlens_k, &options->seqused_k}) {
    *tensor = onepass::no_tensor();
  }
}

void onepass_exec_init(onepass_exec* exec) {
  *exec = onepass_exec{};
  exec->size = sizeof *exec;
}

void onepass_plan_info_init(onepass_plan_info* info) {
  *info = onepass_plan_info{};
  info->size = sizeof *info;
}

void onepass_argument_init(onepass_argument* argument, const char* name) {
  *argument = onepass_argument{};
  argument->size = sizeof *argument;
  argument->name = name;
  argument->array = onepass::no_tensor();
}

void onepass_argument_gradient_init(onepass_argument_gradient* gradient, const char* name) {
  *gradient = onepass_argument_gradient{};
  gradient->size = sizeof *gradient;
  gradient->name = name;
  gradient->gradient = onepass::no_tensor();
}

void onepass_backward_init(onepass_backward* backward) {
  *backward = onepass_backward{};
  backward->size = sizeof *backward;
  for (onepass_tensor* tensor : {&backward->o, &backward->lse, &backward->dout, &backward->dlse,
                                 &backward->dq, &backward->dk, &backward->dv, &backward->dsink}) {
    *tensor = onepass::no_tensor();
  }
}

void onepass_kv_cache_init(onepass_kv_cache* cache) {
  *cache = onepass_kv_cache{};
  cache->size = sizeof *cache;
  for (onepass_tensor* tensor :
       {&cache->k, &cache->v, &cache->seqlens, &cache->block_table, &cache->batch_idx,
        &cache->k_new, &cache->v_new, &cache->rotary_cos, &cache->rotary_sin}) {
    *tensor = onepass::no_tensor();
  }
}

void onepass_tensor_init(onepass_tensor* tensor, const void* data, onepass_dtype dtype,
                         std::int32_t rank, const std::int64_t* shape) {
  *tensor = onepass::no_tensor();
  tensor->data = const_cast<void*>(data);
  tensor->dtype = dtype;
  tensor->rank = rank;
  if (rank < 0 || rank > onepass::max_rank) return;  // refused by name when the tensor is used
  const auto count = static_cast<std::size_t>(rank);
  const onepass::TensorView view(data, static_cast<onepass::DType>(dtype), std::span(shape, count),
                                 {});
  std::copy(view.shape.begin(), view.shape.end(), tensor->shape);
  std::copy(view.strides.begin(), view.strides.end(), tensor->strides);
}
