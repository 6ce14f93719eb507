// attention, attention_varlen, plan, explain.
#include <nanobind/stl/string.h>

#include "docs.h"
#include "functions.h"
#include "onepass/onepass.h"
#include "options.h"
#include "outputs.h"
#include "stream.h"

namespace onepass::python {
namespace {

// One call with its arguments: the views for the library and the arrays that hold them.
struct Call {
  Call(Given& given, bool packed)
      : q(read_array("q", given.required("q"))),
        k(read_array("k", given.required("k"))),
        v(read_array("v", given.required("v"))),
        options(packed ? read_packed_options(given) : read_options(given)),
        outputs(given, q.view, v.view) {
    given.end();
    options.attention.lse = outputs.lse();
  }

  Array q, k, v;
  Options options;
  Outputs outputs;
};

Plan plan(Given& given) {
  const Call call(given, false);
  return onepass::plan(call.q.view, call.k.view, call.v.view, call.outputs.o(),
                       call.options.attention, call.options.threads);
}

nb::object attention(Given& given, bool packed) {
  Call call(given, packed);
  call.outputs.make(call.q);
  call.options.attention.lse = call.outputs.lse();
  Exec exec;
  exec.threads = call.options.threads;
  exec.stream = read_stream(call.options.stream, call.q);
  {
    nb::gil_scoped_release released;
    onepass::attention(call.q.view, call.k.view, call.v.view, call.outputs.o(),
                       call.options.attention, exec);
  }
  return call.outputs.result(call.q);
}

}  // namespace

void bind_forward(nb::module_& m) {
  const std::string call = std::string("(q: Any, k: Any, v: Any, *, ") + call_parameters +
                           output_parameters + exec_parameters;
  const std::string packed = std::string("(q: Any, k: Any, v: Any, ") + packed_parameters +
                             call_parameters + output_parameters + exec_parameters;
  bind(m, "attention", {"q", "k", "v"}, call + " -> Any", attention_doc,
       naming_out([](Given& given) { return attention(given, false); }));
  bind(m, "attention_varlen", {"q", "k", "v", "cu_seqlens_q", "cu_seqlens_k"}, packed + " -> Any",
       varlen_doc, naming_out([](Given& given) { return attention(given, true); }));
  bind(m, "plan", {"q", "k", "v"}, call + " -> Plan", plan_doc, naming_out(plan));
  bind(m, "explain", {"q", "k", "v"}, call + " -> str", explain_doc,
       naming_out([](Given& given) { return onepass::explain(plan(given)); }));
}

}  // namespace onepass::python
