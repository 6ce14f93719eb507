#include "conformance/backward_call.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "conformance/comparison.h"
#include "conformance/generator.h"
#include "conformance/mirror.h"
#include "conformance/options.h"
#include "onepass/backward.h"

namespace onepass::conformance {
namespace {

// Owns the memory of one backward call.
class Memory {
 public:
  explicit Memory(const BackwardCall& backward) : call_(backward.call), held_(backward.call) {}

  TensorView input(DType dtype, const reference::Tensor& tensor, Layout layout, bool packed) {
    Storage& storage = kept_.emplace_back(dtype, tensor.shape, layout);
    storage.write(tensor.data);
    return packed ? without_batch(storage.view()) : storage.view();
  }
  TensorView of_queries(DType dtype, const reference::Tensor& tensor, Layout layout) {
    return input(dtype, tensor, layout, !call_.cu_seqlens_q.empty());
  }
  TensorView of_keys(DType dtype, const reference::Tensor& tensor, Layout layout) {
    return input(dtype, tensor, layout, !call_.cu_seqlens_k.empty());
  }
  TensorView of_rows(const std::vector<double>& values) {
    Storage& storage = kept_.emplace_back(
        wide(call_.dtype), std::array{call_.q.shape[0], call_.q.shape[2], call_.q.shape[1]});
    storage.write(values);
    return call_.cu_seqlens_q.empty() ? storage.view() : without_batch(storage.view());
  }

  Attention& options() { return held_.options; }

 private:
  const Call& call_;
  LibraryOptions held_;
  std::deque<Storage> kept_;
};

const NamedArray& array_of(const Call& call, const std::string& name) {
  for (const NamedArgument& argument : call.arguments) {
    if (argument.name == name) return std::get<NamedArray>(argument.value);
  }
  throw Error(Status::invalid("dargs: " + name + " is no argument of this call"));
}

}  // namespace

std::string BackwardCall::line() const {
  std::string text = "backward of " + call.line();
  for (const auto& [tensor, layout] :
       {std::pair{"dout", dout_layout}, {"dq", dq_layout}, {"dk", dk_layout}, {"dv", dv_layout}}) {
    if (layout == Layout::seq_major) continue;
    text.append(" (").append(tensor).append(" ").append(name(layout)).append(")");
  }
  return text;
}

BackwardCall backward_of(const Call& call) {
  BackwardCall backward;
  backward.call = call;
  backward.dout_dtype = backward.gradient_dtype = call.dtype;
  const auto& [b, s_q, h_q, d] = call.q.shape;
  const std::int64_t d_v = call.v.shape[3];
  backward.dout = {{b, s_q, h_q, d_v}, generate(4, 1.0, b * s_q * h_q * d_v)};
  for (double& value : backward.dout.data) value = rounded(call.dtype, value);
  return backward;
}

Gradients run(const BackwardCall& backward, int threads, Device device) {
  return run_backward(backward, run(backward.call, threads, device), threads, device);
}

Gradients run_backward(const BackwardCall& backward, Answer forward, int threads, Device device) {
  const Call& call = backward.call;
  Gradients out;
  out.forward = std::move(forward);
  if (!out.forward.ran) {
    out.error = out.forward.error, out.code = out.forward.code;
    return out;
  }
  Memory memory(backward);
  const auto packed_q = !call.cu_seqlens_q.empty(), packed_k = !call.cu_seqlens_k.empty();
  TensorView q = memory.of_queries(call.dtype, call.q, call.q_layout);
  TensorView k = memory.of_keys(call.dtype, call.k, call.k_layout);
  TensorView v = memory.of_keys(call.dtype, call.v, call.v_layout);
  Backward request;
  request.o =
      memory.of_queries(call.out_dtype, {backward.dout.shape, out.forward.o}, call.o_layout);
  request.lse = memory.of_rows(out.forward.lse);
  request.dout = memory.of_queries(backward.dout_dtype, backward.dout, backward.dout_layout);
  if (!backward.dlse.empty()) request.dlse = memory.of_rows(backward.dlse);

  const Storage dq(backward.gradient_dtype, call.q.shape, backward.dq_layout);
  const Storage dk(backward.gradient_dtype, call.k.shape, backward.dk_layout);
  const Storage dv(backward.gradient_dtype, call.v.shape, backward.dv_layout);
  request.dq = packed_q ? without_batch(dq.view()) : dq.view();
  request.dk = packed_k ? without_batch(dk.view()) : dk.view();
  request.dv = packed_k ? without_batch(dv.view()) : dv.view();
  std::deque<Storage> others;
  if (!call.sink.empty()) {
    others.emplace_back(wide(call.dtype), std::array{call.q.shape[2]});
    request.dsink = others.back().view();
  }
  for (const std::string& name : backward.dargs) {
    others.emplace_back(wide(call.dtype), array_of(call, name).shape);
    request.dargs.push_back({name, others.back().view()});
  }
  Mirror mirror(device, Storage::guard_bytes);
  try {
    mirror.take(memory.options());
    for (TensorView* tensor : {&q, &k, &v, &request.o, &request.lse, &request.dout, &request.dlse,
                               &request.dq, &request.dk, &request.dv, &request.dsink}) {
      *tensor = mirror.of(*tensor);
    }
    for (ArgumentGradient& one : request.dargs) one.gradient = mirror.of(one.gradient);
    out.kernel = plan_backward(q, k, v, request, memory.options(), threads).kernel;
    Exec exec;
    exec.threads = threads;
    attention_backward(q, k, v, request, memory.options(), exec);
    mirror.fetch();
    out.ran = true;
  } catch (const Error& error) {
    out.error = error.what(), out.code = error.code;
  }
  out.guards_held = dq.guards_hold() && dk.guards_hold() && dv.guards_hold();
  out.outputs_kept = dq.untouched() && dk.untouched() && dv.untouched();
  for (const Storage& storage : others) {
    out.guards_held = out.guards_held && storage.guards_hold();
    out.outputs_kept = out.outputs_kept && storage.untouched();
  }
  out.dq = dq.read(), out.dk = dk.read(), out.dv = dv.read();
  auto other = others.begin();
  if (!call.sink.empty()) out.dsink = (other++)->read();
  for (const std::string& name : backward.dargs) out.dargs[name] = (other++)->read();
  return out;
}

reference::Gradients reference_gradients(const BackwardCall& backward) {
  const Call& call = backward.call;
  return reference::attention_backward(backward.dout, call.q, call.k, call.v,
                                       reference_options(call), backward.dlse);
}

reference::Gradients plain_gradients(const BackwardCall& backward) {
  const Call& call = backward.call;
  return reference::plain_backward(format_of(call.dtype), backward.dout, call.q, call.k, call.v,
                                   reference_options(call), backward.dlse);
}

reference::Gradients absolute_terms(const BackwardCall& backward) {
  const Call& call = backward.call;
  return reference::absolute_terms(backward.dout, call.q, call.k, call.v, reference_options(call),
                                   backward.dlse);
}

}  // namespace onepass::conformance
