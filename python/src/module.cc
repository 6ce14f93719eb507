// The Python module onepass._onepass: converts arguments and results, and nothing else.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "docs.h"
#include "functions.h"
#include "onepass/onepass.h"

namespace onepass::python {
namespace {

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
  bind_forward(m);
  bind_backward(m);
  bind_kvcache(m);
  bind_merge(m);
}
