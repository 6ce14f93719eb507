#include "cpu_backward_case.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace onepass::cpu_test {
namespace {

template <class T>
T element(const TensorView& view, std::int64_t i) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(view.data) + i * size_bytes(view.dtype),
              sizeof value);
  return value;
}

// Contiguous arrays only.
reference::Array reference_array(const TensorView& view) {
  reference::Array array;
  array.shape.assign(view.shape.begin(), view.shape.begin() + view.rank);
  array.type = is_float(view.dtype) ? reference::Type::real : reference::Type::integer;
  for (std::int64_t i = 0; i < view.elements(); ++i) {
    switch (view.dtype) {
      case DType::float64:
        array.reals.push_back(element<double>(view, i));
        break;
      case DType::float32:
        array.reals.push_back(element<float>(view, i));
        break;
      case DType::int64:
        array.integers.push_back(element<std::int64_t>(view, i));
        break;
      default:
        array.integers.push_back(element<std::int32_t>(view, i));
        break;
    }
  }
  return array;
}

void fill(Buffer& buffer, unsigned seed) {
  std::uint32_t state = seed;
  const auto count = static_cast<std::int64_t>(buffer.bytes().size()) / size_bytes(buffer.dtype());
  for (std::int64_t i = 0; i < count; ++i) {
    double sum = 0.0;
    for (int k = 0; k < 3; ++k) {
      state = 1664525U * state + 1013904223U;
      sum += static_cast<double>(state >> 8) / (1 << 23) - 1.0;
    }
    buffer.set(i, sum);
  }
}

std::vector<double> numbers(const Buffer& buffer) {
  std::vector<double> all;
  const auto count = static_cast<std::int64_t>(buffer.bytes().size()) / size_bytes(buffer.dtype());
  for (std::int64_t i = 0; i < count; ++i) all.push_back(buffer.get(i));
  return all;
}

double relative_error(const std::vector<double>& got, const std::vector<double>& want) {
  double largest = 0.0, worst = 0.0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double value = got[i];
    if (std::isnan(value) && std::isnan(want[i])) continue;
    const double error = std::abs(value - want[i]);
    if (!(error <= worst)) worst = std::isnan(error) ? HUGE_VAL : error;
    largest = std::max(largest, std::abs(want[i]));
  }
  return worst == 0.0 ? 0.0 : worst / (largest == 0.0 ? 1.0 : largest);
}

}  // namespace

std::string text_of(const BackwardCase& c) {
  const Case& f = c.forward;
  return std::string(name(f.dtype)) + " b=" + std::to_string(f.b) + " h=" + std::to_string(f.h_q) +
         "/" + std::to_string(f.h_kv) + " s=" + std::to_string(f.s_q) + "/" +
         std::to_string(f.s_kv) + " d=" + std::to_string(f.d) + "/" + std::to_string(f.d_v) +
         " mask=" + f.options.mask + " score=" + f.options.score;
}

std::vector<BackwardCase> cases_of_size_zero() {
  std::vector<BackwardCase> cases;
  for (const auto& [b, s_q, s_kv, d, d_v] : {std::array<std::int64_t, 5>{0, 4, 4, 8, 8},
                                             {1, 0, 5, 8, 8},
                                             {1, 5, 0, 8, 8},
                                             {1, 0, 0, 8, 8},
                                             {1, 4, 5, 0, 8},
                                             {1, 4, 5, 8, 0}}) {
    cases.push_back(
        {.forward =
             {.b = b, .h_q = 2, .s_q = s_q, .s_kv = s_kv, .d = d, .d_v = d_v, .with_sink = true},
         .with_dlse = true});
  }
  return cases;
}

reference::Tensor reference_tensor(const Buffer& buffer, const TensorView& view) {
  reference::Tensor tensor;
  if (view.rank == 3) {
    TensorView whole = view;
    whole.rank = 4;
    whole.shape = {1, view.shape[0], view.shape[1], view.shape[2]};
    whole.strides = {0, view.strides[0], view.strides[1], view.strides[2]};
    return reference_tensor(buffer, whole);
  }
  for (std::size_t i = 0; i < 4; ++i) tensor.shape[i] = view.shape[i];
  const auto* base = static_cast<const std::byte*>(view.data);
  const std::int64_t offset =
      (base - reinterpret_cast<const std::byte*>(buffer.bytes().data())) / size_bytes(view.dtype);
  for (std::int64_t b = 0; b < view.shape[0]; ++b) {
    for (std::int64_t s = 0; s < view.shape[1]; ++s) {
      for (std::int64_t h = 0; h < view.shape[2]; ++h) {
        for (std::int64_t i = 0; i < view.shape[3]; ++i) {
          tensor.data.push_back(buffer.get(offset + b * view.strides[0] + s * view.strides[1] +
                                           h * view.strides[2] + i * view.strides[3]));
        }
      }
    }
  }
  return tensor;
}

reference::Options reference_options(const Call& call) {
  const Attention& from = call.c.options;
  reference::Options options;
  options.mask = from.mask;
  options.score = from.score;
  options.definitions = from.definitions;
  options.scale = from.scale;
  options.top_left = from.align == Align::top_left;
  const Dropout& dropout = from.dropout;
  options.dropout = {dropout.p, dropout.seed, dropout.offset, dropout.row0, dropout.col0};
  const auto integers = [](const TensorView& view) {
    return view.given() ? reference_array(view).integers : std::vector<std::int64_t>{};
  };
  options.cu_seqlens_q = integers(from.cu_seqlens_q);
  options.cu_seqlens_k = integers(from.cu_seqlens_k);
  options.seqused_k = integers(from.seqused_k);
  for (std::int64_t h = 0; call.c.with_sink && h < call.c.h_q; ++h) {
    options.sink.push_back(call.sink.get(h));
  }
  for (const Argument& argument : from.args) {
    reference::Argument& copy = options.arguments.emplace_back();
    copy.name = argument.name;
    std::visit(
        [&copy](const auto& value) {
          if constexpr (std::is_same_v<std::decay_t<decltype(value)>, TensorView>) {
            copy.value = reference_array(value);
          } else {
            copy.value = value;
          }
        },
        argument.value);
  }
  return options;
}

BackwardRun::BackwardRun(const BackwardCase& c, unsigned seed)
    : call(c.forward, seed),
      dout(c.forward.out_dtype, call.o_view.elements()),
      dlse(call.lse.dtype(), call.lse_view.elements()),
      dq(c.gradient_dtype, call.q_view.elements()),
      dk(c.gradient_dtype, call.k_view.elements()),
      dv(c.gradient_dtype, call.v_view.elements()),
      dsink(call.sink.dtype(), c.forward.h_q) {
  fill(dout, seed + 77);
  fill(dlse, seed + 78);
  const auto like = [](Buffer& buffer, const TensorView& view) {
    const auto rank = static_cast<std::size_t>(view.rank);
    TensorView out = view;
    out.data = buffer.data();
    out.dtype = buffer.dtype();
    out.rank = static_cast<int>(rank);
    return out;
  };
  backward.o = call.o_view;
  backward.lse = call.lse_view;
  backward.dout = like(dout, call.o_view);
  if (c.with_dlse) backward.dlse = like(dlse, call.lse_view);
  backward.dq = like(dq, call.q_view);
  backward.dk = like(dk, call.k_view);
  backward.dv = like(dv, call.v_view);
  if (c.forward.with_sink) backward.dsink = like(dsink, call.sink_view);
  for (const Argument& argument : c.forward.options.args) {
    const auto* array = std::get_if<TensorView>(&argument.value);
    if (array == nullptr || !is_float(array->dtype)) continue;
    dargs.emplace_back(call.lse.dtype(), array->elements());
    backward.dargs.push_back({argument.name, like(dargs.back(), *array)});
  }
}

void pack(BackwardRun& run, std::vector<std::int32_t>& cu_seqlens_q,
          std::vector<std::int32_t>& cu_seqlens_k) {
  const auto packed = [](TensorView& view) {
    if (!view.given()) return;
    --view.rank;
    for (std::size_t dim = 0; dim < 3; ++dim) {
      view.shape[dim] = view.shape[dim + 1], view.strides[dim] = view.strides[dim + 1];
    }
  };
  Backward& b = run.backward;
  for (TensorView* view :
       {&run.call.q_view, &run.call.k_view, &run.call.v_view, &run.call.o_view, &run.call.lse_view,
        &b.o, &b.lse, &b.dout, &b.dlse, &b.dq, &b.dk, &b.dv}) {
    packed(*view);
  }
  const auto view = [](std::vector<std::int32_t>& offsets) {
    return TensorView(offsets.data(), DType::int32, {static_cast<std::int64_t>(offsets.size())});
  };
  run.call.c.options.cu_seqlens_q = view(cu_seqlens_q);
  run.call.c.options.cu_seqlens_k = view(cu_seqlens_k);
}

void BackwardRun::run(int threads) {
  call.run(threads);
  std::vector<Buffer*> outputs = {&dq, &dk, &dv, &dsink};
  for (Buffer& one : dargs) outputs.push_back(&one);
  for (Buffer* buffer : outputs) {
    const auto count =
        static_cast<std::int64_t>(buffer->bytes().size()) / size_bytes(buffer->dtype());
    for (std::int64_t i = 0; i < count; ++i) buffer->set(i, std::nan(""));
  }
  Attention options = call.c.options;
  if (call.c.with_sink) options.sink = call.sink_view;
  attention_backward(call.q_view, call.k_view, call.v_view, backward, options,
                     {.threads = threads});
}

namespace {

reference::Gradients gradients_of(const BackwardRun& run, const reference::Format* format) {
  std::vector<double> through_lse;
  for (std::int64_t i = 0; run.backward.dlse.given() && i < run.backward.dlse.elements(); ++i) {
    through_lse.push_back(run.dlse.get(i));
  }
  const Call& call = run.call;
  const reference::Tensor q = reference_tensor(call.q, call.q_view);
  const reference::Tensor k = reference_tensor(call.k, call.k_view);
  const reference::Tensor v = reference_tensor(call.v, call.v_view);
  const reference::Tensor dout = reference_tensor(run.dout, run.backward.dout);
  const reference::Options options = reference_options(call);
  return format ? reference::plain_backward(*format, dout, q, k, v, options, through_lse)
                : reference::attention_backward(dout, q, k, v, options, through_lse);
}

}  // namespace

reference::Gradients BackwardRun::expected() const { return gradients_of(*this, nullptr); }

reference::Gradients BackwardRun::plain() const {
  const reference::Format format = call.c.dtype == DType::float64    ? reference::Format::float64
                                   : call.c.dtype == DType::float32  ? reference::Format::float32
                                   : call.c.dtype == DType::bfloat16 ? reference::Format::bfloat16
                                                                     : reference::Format::float16;
  return gradients_of(*this, &format);
}

double Errors::largest() const { return std::max({dq, dk, dv, dsink, dargs}); }

Errors errors_of(const BackwardRun& run, const reference::Gradients& want) {
  Errors errors;
  errors.dq = relative_error(numbers(run.dq), want.dq.data);
  errors.dk = relative_error(numbers(run.dk), want.dk.data);
  errors.dv = relative_error(numbers(run.dv), want.dv.data);
  if (run.backward.dsink.given()) errors.dsink = relative_error(numbers(run.dsink), want.dsink);
  for (std::size_t i = 0; i < run.dargs.size(); ++i) {
    const std::vector<double>& exact = want.darguments.at(run.backward.dargs[i].name);
    errors.dargs = std::max(errors.dargs, relative_error(numbers(run.dargs[i]), exact));
  }
  return errors;
}

double plain_dargs_error(const BackwardRun& run, const reference::Gradients& want) {
  if (run.dargs.empty()) return 0.0;
  double worst = 0.0;
  for (const auto& [name, values] : run.plain().darguments) {
    worst = std::max(worst, relative_error(values, want.darguments.at(name)));
  }
  return worst;
}

}  // namespace onepass::cpu_test
