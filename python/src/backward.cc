// attention_backward, attention_varlen_backward, dropout_mask.
#include "onepass/backward.h"
#include "docs.h"
#include "functions.h"
#include "options.h"
#include "outputs.h"
#include "stream.h"

namespace onepass::python {
namespace {

nb::tuple attention_backward(Given& given, bool packed) {
  const Array dout = read_array("dout", given.required("dout"));
  const Array q = read_array("q", given.required("q")), k = read_array("k", given.required("k")),
              v = read_array("v", given.required("v"));
  const Array out = read_array("out", given.required("out"));
  const Array lse = read_array("lse", given.required("lse"));
  const Options options = packed ? read_packed_options(given) : read_options(given);
  const Array dlse = read_optional("dlse", given.optional("dlse"));
  const bool return_args =
      read_flag("return_args", given.otherwise("return_args", nb::bool_(false)));
  given.end();

  const DType real = q.view.dtype == DType::float64 ? DType::float64 : DType::float32;
  std::vector<Array> gradients;
  for (const Array* input : {&q, &k, &v}) {
    gradients.push_back(make_like(q, input->view, input->view.dtype));
  }
  Backward call;
  call.o = out.view, call.lse = lse.view, call.dout = dout.view, call.dlse = dlse.view;
  call.dq = gradients[0].view, call.dk = gradients[1].view, call.dv = gradients[2].view;
  const TensorView& sink = options.attention.sink;
  if (sink.given()) {
    gradients.push_back(make_like(q, sink, sink.dtype));
    call.dsink = gradients.back().view;
  }
  std::vector<Array> argument_gradients;
  for (const Argument& argument : options.attention.args) {
    const auto* array = std::get_if<TensorView>(&argument.value);
    if (!return_args || array == nullptr || !is_float(array->dtype)) continue;
    argument_gradients.push_back(make_like(q, *array, real));
    call.dargs.push_back({argument.name, argument_gradients.back().view});
  }
  Exec exec;
  exec.threads = options.threads;
  exec.stream = read_stream(options.stream, q);
  {
    nb::gil_scoped_release released;
    onepass::attention_backward(q.view, k.view, v.view, call, options.attention, exec);
  }
  nb::list results;
  for (const Array& gradient : gradients) results.append(finish(q, gradient));
  if (return_args) {
    nb::dict by_name;
    for (std::size_t i = 0; i < argument_gradients.size(); ++i) {
      by_name[call.dargs[i].name.c_str()] = finish(q, argument_gradients[i]);
    }
    results.append(by_name);
  }
  return nb::tuple(results);
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
  const std::string rest =
      std::string(call_parameters) + gradient_parameters + exec_parameters + " -> Tuple[Any, ...]";
  bind(m, "attention_backward", {"dout", "q", "k", "v", "out", "lse"}, inputs + "*, " + rest,
       backward_doc, naming_out([](Given& given) { return attention_backward(given, false); }));
  bind(m, "attention_varlen_backward",
       {"dout", "q", "k", "v", "out", "lse", "cu_seqlens_q", "cu_seqlens_k"},
       inputs + packed_parameters + rest, varlen_backward_doc,
       naming_out([](Given& given) { return attention_backward(given, true); }));
  bind(m, "dropout_mask", {"shape", "p", "seed", "offset", "row0", "col0"}, dropout_mask_signature,
       dropout_mask_doc, dropout_mask);
}

}  // namespace onepass::python
