// attention, attention_varlen, plan, explain.
#include <nanobind/stl/string.h>

#include <array>

#include "docs.h"
#include "functions.h"
#include "onepass/onepass.h"
#include "options.h"

namespace onepass::python {
namespace {

// One call with its arguments: the views for the library and the arrays that hold them.
struct Call {
  Array q, k, v, out, lse;
  TensorView o;
  Options options;
  bool out_given = false;
};

// Shapes of o and lse: (b, s, h, d) or, packed, (t, h, d). Ranks that the library will refuse give
// no outputs.
TensorView imagine_o(const TensorView& q, const TensorView& v, DType dtype) {
  std::vector<std::int64_t> shape(q.shape.begin(), q.shape.begin() + q.rank);
  shape.back() = v.shape[static_cast<std::size_t>(v.rank) - 1];
  return imagine(dtype, shape);
}

TensorView imagine_lse(const TensorView& q) {
  const DType dtype = q.dtype == DType::float64 ? DType::float64 : DType::float32;
  if (q.rank == 3) return imagine(dtype, std::array{q.shape[1], q.shape[0]});
  return imagine(dtype, std::array{q.shape[0], q.shape[2], q.shape[1]});
}

// The outputs' views have no memory yet where the caller gave none.
Call read_call(Given& given, bool packed) {
  Call call{read_array("q", given.required("q")),
            read_array("k", given.required("k")),
            read_array("v", given.required("v")),
            {},
            {},
            {},
            {},
            false};
  call.options = packed ? read_packed_options(given) : read_options(given);
  const TensorView &q = call.q.view, &v = call.v.view;
  const bool whole = (q.rank == 4 || (packed && q.rank == 3)) && v.rank >= 3;
  const nb::object out = given.optional("out"), out_dtype = given.optional("out_dtype");
  const bool typed = !out_dtype.is_none();
  const DType dtype = typed ? read_dtype("out_dtype", out_dtype) : q.dtype;
  call.out_given = !out.is_none();
  if (call.out_given) {
    call.out = write_array("out", out);
    call.o = call.out.view;
    if (typed && call.o.dtype != dtype) {
      throw Error(Status::type_error(std::string("out_dtype: ") + name(dtype) + " beside out's " +
                                     name(call.o.dtype) +
                                     "; the two must be equal; leave one of them out"));
    }
  } else if (whole) {
    call.o = imagine_o(q, v, dtype);
  }
  const nb::object return_lse = given.otherwise("return_lse", nb::bool_(false));
  if (read_flag("return_lse", return_lse) && whole) call.options.attention.lse = imagine_lse(q);
  given.end();
  return call;
}

Plan plan(Given& given) {
  const Call call = read_call(given, false);
  return onepass::plan(call.q.view, call.k.view, call.v.view, call.o, call.options.attention,
                       call.options.threads);
}

nb::object attention(Given& given, bool packed) {
  Call call = read_call(given, packed);
  const auto make = [&](TensorView& view) {
    const Array made = make_like(call.q, view.dtype,
                                 std::span(view.shape.data(), static_cast<std::size_t>(view.rank)));
    view = made.view;
    return made;
  };
  if (call.o.given() && !call.out_given) call.out = make(call.o);
  TensorView& lse = call.options.attention.lse;
  if (lse.given()) call.lse = make(lse);
  {
    nb::gil_scoped_release released;
    Exec exec;
    exec.threads = call.options.threads;
    onepass::attention(call.q.view, call.k.view, call.v.view, call.o, call.options.attention, exec);
  }
  const nb::object result = call.out_given ? call.out.object : finish(call.q, call.out);
  return lse.given() ? nb::make_tuple(result, finish(call.q, call.lse)) : result;
}

}  // namespace

void bind_forward(nb::module_& m) {
  const std::string call = std::string("(q: Any, k: Any, v: Any, *, ") + call_parameters +
                           output_parameters + threads_parameter;
  const std::string packed = std::string("(q: Any, k: Any, v: Any, ") + packed_parameters +
                             call_parameters + output_parameters + threads_parameter;
  bind(m, "attention", {"q", "k", "v"}, call + " -> Any", attention_doc,
       naming_out([](Given& given) { return attention(given, false); }));
  bind(m, "attention_varlen", {"q", "k", "v", "cu_seqlens_q", "cu_seqlens_k"}, packed + " -> Any",
       varlen_doc, naming_out([](Given& given) { return attention(given, true); }));
  bind(m, "plan", {"q", "k", "v"}, call + " -> Plan", plan_doc, naming_out(plan));
  bind(m, "explain", {"q", "k", "v"}, call + " -> str", explain_doc,
       naming_out([](Given& given) { return onepass::explain(plan(given)); }));
}

}  // namespace onepass::python
