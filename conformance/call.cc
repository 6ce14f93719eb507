#include "conformance/call.h"

#include <algorithm>
#include <utility>

#include "conformance/generator.h"
#include "conformance/mirror.h"
#include "conformance/options.h"

namespace onepass::conformance {
namespace {

reference::Tensor tensor(std::array<std::int64_t, 4> shape, std::vector<double> data) {
  return {shape, std::move(data)};
}

std::int64_t elements(const std::array<std::int64_t, 4>& shape) {
  return shape[0] * shape[1] * shape[2] * shape[3];
}

Storage stored(const Call& call, const reference::Tensor& tensor, Layout layout) {
  Storage storage(call.dtype, tensor.shape, layout);
  storage.write(tensor.data);
  return storage;
}

}  // namespace

Shape Call::shape() const {
  const auto packed = static_cast<std::int64_t>(cu_seqlens_q.size());
  return {packed ? packed - 1 : q.shape[0],
          q.shape[2],
          k.shape[2],
          q.shape[1],
          k.shape[1],
          q.shape[3],
          v.shape[3]};
}

Call Call::in(DType type) const {
  Call call = *this;
  call.dtype = call.out_dtype = type;
  for (reference::Tensor* tensor : {&call.q, &call.k, &call.v}) {
    for (double& value : tensor->data) value = rounded(type, value);
  }
  return call;
}

std::string Call::line() const {
  const std::array out_shape{q.shape[0], q.shape[1], q.shape[2], v.shape[3]};
  const bool packed_q = !cu_seqlens_q.empty(), packed_k = !cu_seqlens_k.empty();
  const auto view = [](DType type, std::span<const std::int64_t> dims, bool packed) {
    return TensorView(nullptr, type, packed ? dims.subspan(1) : dims, {});
  };
  std::string text;
  try {
    text = plan(view(dtype, q.shape, packed_q), view(dtype, k.shape, packed_k),
                view(dtype, v.shape, packed_k), view(out_dtype, out_shape, packed_q),
                LibraryOptions(*this).options)
               .problem_line;
  } catch (const Error&) {  // the library refuses the call: say what matters most
    text = std::string("fwd ") + name(dtype) + " mask=" + mask + " score=" + score;
  }
  for (const auto& [tensor, layout] :
       {std::pair{"q", q_layout}, {"k", k_layout}, {"v", v_layout}, {"o", o_layout}}) {
    if (layout == Layout::seq_major) continue;
    text.append(" (").append(tensor).append(" ").append(name(layout)).append(")");
  }
  if (!repeat.empty()) text.append(" (repeat: ").append(repeat).append(")");
  return text;
}

reference::Tensor filled(std::array<std::int64_t, 4> shape, double value) {
  return tensor(shape, std::vector<double>(static_cast<std::size_t>(elements(shape)), value));
}

Call generated(const Shape& s) {
  Call call;
  call.q = tensor({s.b, s.s_q, s.h_q, s.d}, generate(1, 4.0, s.b * s.s_q * s.h_q * s.d));
  call.k = tensor({s.b, s.s_kv, s.h_kv, s.d}, generate(2, 1.0, s.b * s.s_kv * s.h_kv * s.d));
  call.v = tensor({s.b, s.s_kv, s.h_kv, s.d_v}, generate(3, 1.0, s.b * s.s_kv * s.h_kv * s.d_v));
  return call;
}

Call counting(const Shape& s, double first) {
  Call call = generated(s);
  call.q = filled(call.q.shape, 0.0);
  call.v = tensor(call.v.shape, ramp(s.b, s.s_kv, s.h_kv, s.d_v, first));
  return call;
}

TensorView without_batch(const TensorView& view) {
  TensorView out = view;
  out.rank = view.rank - 1;
  std::copy_n(view.shape.begin() + 1, out.rank, out.shape.begin());
  std::copy_n(view.strides.begin() + 1, out.rank, out.strides.begin());
  return out;
}

Answer run(const Call& call, int threads, Device device) {
  const Storage q = stored(call, call.q, call.q_layout), k = stored(call, call.k, call.k_layout);
  const Storage v = stored(call, call.v, call.v_layout);
  const auto [b, s_q, h_q, d] = call.q.shape;
  const Storage o(call.out_dtype, std::array{b, s_q, h_q, call.v.shape[3]}, call.o_layout);
  const Storage lse(wide(call.dtype), std::array{b, h_q, s_q});
  LibraryOptions held(call);
  const auto of_queries = [&](const Storage& storage) {
    return call.cu_seqlens_q.empty() ? storage.view() : without_batch(storage.view());
  };
  const auto of_keys = [&](const Storage& storage) {
    return call.cu_seqlens_k.empty() ? storage.view() : without_batch(storage.view());
  };
  held.options.lse = of_queries(lse);
  Answer answer;
  Mirror mirror(device, Storage::guard_bytes);
  try {
    mirror.take(held.options);
    const TensorView q_at = mirror.of(of_queries(q)), k_at = mirror.of(of_keys(k));
    const TensorView v_at = mirror.of(of_keys(v)), o_at = mirror.of(of_queries(o));
    answer.kernel = plan(q_at, k_at, v_at, o_at, held.options, threads).kernel;
    Exec exec;
    exec.threads = threads;
    attention(q_at, k_at, v_at, o_at, held.options, exec);
    mirror.fetch();
    answer.ran = true;
  } catch (const Error& error) {
    answer.error = error.what();
    answer.code = error.code;
  }
  answer.guards_held = o.guards_hold() && lse.guards_hold();
  answer.outputs_kept = o.untouched() && lse.untouched();
  answer.o = o.read();
  answer.lse = lse.read();
  return answer;
}

reference::Attention reference_of(const Call& call) {
  return reference::Attention(call.q, call.k, call.v, reference_options(call));
}

}  // namespace onepass::conformance
