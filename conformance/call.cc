#include "conformance/call.h"

#include <deque>
#include <utility>

#include "conformance/generator.h"

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

// Keeps what the library's options point to.
class Options {
 public:
  explicit Options(const Call& call) {
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
      options.sink = keep(call.dtype == DType::float64 ? DType::float64 : DType::float32,
                          {static_cast<std::int64_t>(call.sink.size())}, call.sink);
    }
    options.q_start = start(call.q_start, DType::int32);
    options.k_start = start(call.k_start, DType::int64);
  }

  Attention options;

 private:
  TensorView keep(DType dtype, const std::vector<std::int64_t>& shape,
                  const std::vector<double>& values) {
    kept_.emplace_back(dtype, shape).write(values);
    return kept_.back().view();
  }

  std::optional<Start> start(const std::vector<std::int64_t>& given, DType dtype) {
    if (given.empty()) return std::nullopt;
    if (given.size() == 1) return given[0];
    return keep(dtype, {static_cast<std::int64_t>(given.size())},
                std::vector<double>(given.begin(), given.end()));
  }

  std::deque<Storage> kept_;
};

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

Shape Call::shape() const {
  return {q.shape[0], q.shape[2], k.shape[2], q.shape[1], k.shape[1], q.shape[3], v.shape[3]};
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
  const Shape s = shape();
  const std::array out_shape{s.b, s.s_q, s.h_q, s.d_v};
  const auto view = [](DType type, std::span<const std::int64_t> dims) {
    return TensorView(nullptr, type, dims, {});
  };
  std::string text;
  try {
    text = plan(view(dtype, q.shape), view(dtype, k.shape), view(dtype, v.shape),
                view(out_dtype, out_shape), Options(*this).options)
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

Answer run(const Call& call, int threads) {
  const Shape s = call.shape();
  const Storage q = stored(call, call.q, call.q_layout), k = stored(call, call.k, call.k_layout);
  const Storage v = stored(call, call.v, call.v_layout);
  const Storage o(call.out_dtype, std::array{s.b, s.s_q, s.h_q, s.d_v}, call.o_layout);
  const Storage lse(call.dtype == DType::float64 ? DType::float64 : DType::float32,
                    std::array{s.b, s.h_q, s.s_q});
  Options held(call);
  held.options.lse = lse.view();
  Answer answer;
  try {
    answer.kernel = plan(q.view(), k.view(), v.view(), o.view(), held.options, threads).kernel;
    Exec exec;
    exec.threads = threads;
    attention(q.view(), k.view(), v.view(), o.view(), held.options, exec);
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
  reference::Options options;
  options.mask = call.mask, options.score = call.score, options.definitions = call.definitions;
  options.scale = call.scale, options.top_left = call.top_left;
  const DType sink_dtype = call.dtype == DType::float64 ? DType::float64 : DType::float32;
  for (const double logit : call.sink) options.sink.push_back(rounded(sink_dtype, logit));
  options.q_start = call.q_start, options.k_start = call.k_start;
  const Dropout& dropout = call.dropout;
  options.dropout = {dropout.p, dropout.seed, dropout.offset, dropout.row0, dropout.col0};
  for (const NamedArgument& argument : call.arguments) {
    options.arguments.push_back(reference_argument(argument));
  }
  return reference::Attention(call.q, call.k, call.v, options);
}

}  // namespace onepass::conformance
