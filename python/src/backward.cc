// attention_backward, attention_varlen_backward, plan_backward, dropout_mask.
#include "onepass/backward.h"
#include "docs.h"
#include "functions.h"
#include "options.h"
#include "outputs.h"
#include "stream.h"

namespace onepass::python {
namespace {

// One call with its arguments, and its gradients: views that need no memory, then arrays.
struct Call {
  Call(Given& given, bool packed)
      : dout(read_array("dout", given.required("dout"))),
        q(read_array("q", given.required("q"))),
        k(read_array("k", given.required("k"))),
        v(read_array("v", given.required("v"))),
        out(read_array("out", given.required("out"))),
        lse(read_array("lse", given.required("lse"))),
        options(packed ? read_packed_options(given) : read_options(given)),
        dlse(read_optional("dlse", given.optional("dlse"))),
        return_args(read_flag("return_args", given.otherwise("return_args", nb::bool_(false)))) {
    given.end();
    const auto like = [&](const TensorView& view, DType dtype) {
      const auto rank = static_cast<std::size_t>(view.rank);
      return imagine(dtype, std::span(view.shape).first(rank), q.view.device);
    };
    backward.o = out.view, backward.lse = lse.view;
    backward.dout = dout.view, backward.dlse = dlse.view;
    backward.dq = like(q.view, q.view.dtype);
    backward.dk = like(k.view, k.view.dtype);
    backward.dv = like(v.view, v.view.dtype);
    const TensorView& sink = options.attention.sink;
    if (sink.given()) backward.dsink = like(sink, sink.dtype);
    const DType real = q.view.dtype == DType::float64 ? DType::float64 : DType::float32;
    for (const Argument& argument : options.attention.args) {
      const auto* array = std::get_if<TensorView>(&argument.value);
      if (!return_args || array == nullptr || !is_float(array->dtype)) continue;
      backward.dargs.push_back({argument.name, like(*array, real)});
    }
  }

  void make() {
    const auto make_one = [&](TensorView& view) {
      if (!view.given()) return;
      gradients.push_back(make_like(q, view, view.dtype));
      view = gradients.back().view;
    };
    for (TensorView* view : {&backward.dq, &backward.dk, &backward.dv, &backward.dsink}) {
      make_one(*view);
    }
    for (ArgumentGradient& one : backward.dargs) make_one(one.gradient);
  }

  nb::tuple result() const {
    nb::list results;
    const std::size_t inputs = gradients.size() - backward.dargs.size();
    for (std::size_t i = 0; i < inputs; ++i) results.append(finish(q, gradients[i]));
    if (return_args) {
      nb::dict by_name;
      for (std::size_t i = 0; i < backward.dargs.size(); ++i) {
        by_name[backward.dargs[i].name.c_str()] = finish(q, gradients[inputs + i]);
      }
      results.append(by_name);
    }
    return nb::tuple(results);
  }

  Array dout, q, k, v, out, lse;
  Options options;
  Array dlse;
  bool return_args;
  Backward backward;
  std::vector<Array> gradients;  // of the inputs, then of the arrays in args
};

Plan plan_backward(Given& given) {
  const Call call(given, false);
  return onepass::plan_backward(call.q.view, call.k.view, call.v.view, call.backward,
                                call.options.attention, call.options.threads);
}

nb::tuple attention_backward(Given& given, bool packed) {
  Call call(given, packed);
  call.make();
  Exec exec;
  exec.threads = call.options.threads;
  exec.stream = read_stream(call.options.stream, call.q);
  {
    nb::gil_scoped_release released;
    onepass::attention_backward(call.q.view, call.k.view, call.v.view, call.backward,
                                call.options.attention, exec);
  }
  return call.result();
}

nb::object dropout_mask(Given& given) {
  const nb::object shape = nb::tuple(given.required("shape"));
  Dropout dropout = read_dropout(given, "p");
  given.end();
  const nb::object mask = nb::module_::import_("numpy").attr("empty")(shape, "bool");
  onepass::dropout_mask(write_array("shape", mask).view, dropout);
  return mask;
}

}  // namespace

void bind_backward(nb::module_& m) {
  const std::string inputs = "(dout: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, ";
  const std::string keywords = std::string(call_parameters) + gradient_parameters + exec_parameters;
  const std::string rest = keywords + " -> Tuple[Any, ...]";
  bind(m, "attention_backward", {"dout", "q", "k", "v", "out", "lse"}, inputs + "*, " + rest,
       backward_doc, naming_out([](Given& given) { return attention_backward(given, false); }));
  bind(m, "attention_varlen_backward",
       {"dout", "q", "k", "v", "out", "lse", "cu_seqlens_q", "cu_seqlens_k"},
       inputs + packed_parameters + rest, varlen_backward_doc,
       naming_out([](Given& given) { return attention_backward(given, true); }));
  bind(m, "plan_backward", {"dout", "q", "k", "v", "out", "lse"},
       inputs + "*, " + keywords + " -> Plan", plan_backward_doc, naming_out(plan_backward));
  bind(m, "dropout_mask", {"shape", "p", "seed", "offset", "row0", "col0"}, dropout_mask_signature,
       dropout_mask_doc, dropout_mask);
}

}  // namespace onepass::python
