// The Python module onepass._onepass: converts arguments and results, and nothing else.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>

#include "docs.h"
#include "onepass/onepass.h"
#include "options.h"

namespace onepass::python {
namespace {

using namespace nb::literals;  // NOLINT: "name"_a

void translate(const std::exception_ptr& exception, void*) {
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    PyObject* type = PyExc_RuntimeError;
    if (error.code == Code::invalid_argument) type = PyExc_ValueError;
    if (error.code == Code::type_error) type = PyExc_TypeError;
    if (error.code == Code::not_supported) type = PyExc_NotImplementedError;
    PyErr_SetString(type, error.what());
  }
}

// One call with its keywords: the views for the library and the arrays that hold them.
struct Call {
  Array q, k, v, out, lse;
  TensorView o;
  Options options;
};

// The outputs' views have no memory yet where the caller gave none.
Call read_call(nb::handle q, nb::handle k, nb::handle v, const Keywords& keywords) {
  Call call{read_array("q", q), read_array("k", k), read_array("v", v), {}, {}, {}, {}};
  call.options = read_options(keywords);
  const TensorView &qv = call.q.view, &vv = call.v.view;
  const bool whole = qv.rank == 4 && vv.rank == 4;  // else the library refuses q or v first
  const bool typed = !keywords.out_dtype.is_none();
  const DType dtype = typed ? read_dtype("out_dtype", keywords.out_dtype) : qv.dtype;
  if (!keywords.out.is_none()) {
    call.out = write_array("out", keywords.out);
    call.o = call.out.view;
    if (typed && call.o.dtype != dtype) {
      throw Error(Status::type_error(std::string("out_dtype: ") + name(dtype) + " beside out's " +
                                     name(call.o.dtype) +
                                     "; the two must be equal; leave one of them out"));
    }
  } else if (whole) {
    call.o = imagine(dtype, std::array{qv.shape[0], qv.shape[1], qv.shape[2], vv.shape[3]});
  }
  if (read_flag("return_lse", keywords.return_lse) && whole) {
    const DType lse_dtype = qv.dtype == DType::float64 ? DType::float64 : DType::float32;
    call.options.attention.lse =
        imagine(lse_dtype, std::array{qv.shape[0], qv.shape[2], qv.shape[1]});
  }
  return call;
}

Plan plan(nb::handle q, nb::handle k, nb::handle v, const Keywords& keywords) {
  const Call call = read_call(q, k, v, keywords);
  return onepass::plan(call.q.view, call.k.view, call.v.view, call.o, call.options.attention,
                       call.options.threads);
}

std::string explain(nb::handle q, nb::handle k, nb::handle v, const Keywords& keywords) {
  return onepass::explain(plan(q, k, v, keywords));
}

nb::object attention(nb::handle q, nb::handle k, nb::handle v, const Keywords& keywords) {
  Call call = read_call(q, k, v, keywords);
  TensorView& lse = call.options.attention.lse;
  if (call.o.given() && !call.out.view.given()) {
    call.out = make_like(call.q, call.o.dtype, std::span(call.o.shape.data(), 4));
    call.o = call.out.view;
  }
  if (lse.given()) {
    call.lse = make_like(call.q, lse.dtype, std::span(lse.shape.data(), 3));
    lse = call.lse.view;
  }
  {
    nb::gil_scoped_release released;
    Exec exec;
    exec.threads = call.options.threads;
    onepass::attention(call.q.view, call.k.view, call.v.view, call.o, call.options.attention, exec);
  }
  const bool given = !keywords.out.is_none();
  nb::object result = given ? nb::object(keywords.out) : finish(call.q, call.out);
  return lse.given() ? nb::make_tuple(result, finish(call.q, call.lse)) : result;
}

void merge(nb::handle o, nb::handle lse, nb::handle o_other, nb::handle lse_other,
           nb::handle threads) {
  const Array to = write_array("o", o), to_lse = write_array("lse", lse);
  const Array from = read_array("o_other", o_other), from_lse = read_array("lse_other", lse_other);
  Exec exec;
  exec.threads = read_threads(threads);
  nb::gil_scoped_release released;
  onepass::merge(to.view, to_lse.view, from.view, from_lse.view, exec);
}

// What the library calls o is `out` to a Python caller.
template <class Function>
auto naming_out(Function function) {
  try {
    return function();
  } catch (const Error& error) {
    const std::string message = error.what();
    if (message.rfind("o: ", 0) != 0) throw;
    throw Error({error.code, "out" + message.substr(1)});
  }
}

// Binds a function of q, k, v and all keywords of a call.
template <class Function>
void define(nb::module_& m, const char* name, Function function, const char* returns,
            const char* doc) {
  const std::string signature = std::string("def ") + name + call_parameters + " -> " + returns;
  m.def(
      name,
      [function](nb::handle q, nb::handle k, nb::handle v, nb::object mask, nb::object score,
                 nb::object scale, nb::object args, nb::object sink, nb::object dropout,
                 nb::object seed, nb::object align, nb::object q_start, nb::object k_start,
                 nb::object definitions, nb::object return_lse, nb::object out,
                 nb::object out_dtype, nb::object threads) {
        return naming_out([&] {
          return function(q, k, v,
                          Keywords{mask, score, scale, args, sink, dropout, seed, align, q_start,
                                   k_start, definitions, return_lse, out, out_dtype, threads});
        });
      },
      "q"_a.none(), "k"_a.none(), "v"_a.none(), nb::kw_only(), "mask"_a.none() = "full",
      "score"_a.none() = nb::none(), "scale"_a.none() = nb::none(), "args"_a.none() = nb::none(),
      "sink"_a.none() = nb::none(), "dropout"_a.none() = 0.0, "seed"_a.none() = 0,
      "align"_a.none() = "bottom_right", "q_start"_a.none() = nb::none(),
      "k_start"_a.none() = nb::none(), "definitions"_a.none() = nb::none(),
      "return_lse"_a.none() = false, "out"_a.none() = nb::none(), "out_dtype"_a.none() = nb::none(),
      "threads"_a.none() = nb::none(), nb::sig(signature.c_str()), doc);
}

}  // namespace
}  // namespace onepass::python

NB_MODULE(_onepass, m) {
  namespace py = onepass::python;
  using namespace py;  // NOLINT
  m.doc() = "onepass: exact attention in one pass over the data.";
  m.attr("__version__") = onepass::version();
  nb::register_exception_translator(translate);

  nb::class_<onepass::Plan>(m, "Plan", plan_class_doc)
      .def_ro("kernel", &onepass::Plan::kernel)
      .def_prop_ro(
          "tile",
          [](const onepass::Plan& plan) { return std::pair(plan.tile.rows, plan.tile.keys); })
      .def_ro("splits", &onepass::Plan::splits)
      .def_ro("threads", &onepass::Plan::threads)
      .def_ro("workspace_bytes", &onepass::Plan::workspace_bytes)
      .def_ro("reason", &onepass::Plan::reason)
      .def_prop_ro("refused",
                   [](const onepass::Plan& plan) {
                     std::vector<std::pair<std::string, std::string>> refused;
                     for (const onepass::Refusal& r : plan.refused) {
                       refused.emplace_back(r.kernel, r.reason);
                     }
                     return refused;
                   })
      .def_ro("problem_line", &onepass::Plan::problem_line)
      .def("__str__", [](const onepass::Plan& plan) { return onepass::explain(plan); });
  define(m, "attention", attention, "Any", attention_doc);
  define(m, "plan", plan, "Plan", plan_doc);
  define(m, "explain", explain, "str", explain_doc);
  m.def("merge", merge, "o"_a.none(), "lse"_a.none(), "o_other"_a.none(), "lse_other"_a.none(),
        nb::kw_only(), "threads"_a.none() = nb::none(), nb::sig(merge_signature), merge_doc);
}
