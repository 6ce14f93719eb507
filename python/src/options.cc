#include "options.h"

#include <nanobind/stl/string.h>

#include <limits>
#include <utility>

#include "onepass/status.h"

namespace onepass::python {
namespace {

[[noreturn]] void refuse(const std::string& argument, nb::handle found, const char* allowed) {
  const std::string kind = nb::str(nb::handle(found.type()).attr("__name__")).c_str();
  throw Error(Status::type_error(argument + ": found " + kind + "; " + allowed));
}

std::string read_text(const std::string& argument, nb::handle object) {
  if (!nb::isinstance<nb::str>(object)) {
    refuse(argument, object, "a str is allowed; write the expression as text");
  }
  std::string text;
  if (!nb::try_cast(object, text)) {
    throw Error(
        Status::invalid(argument + ": not valid Unicode; ASCII text is allowed; retype it"));
  }
  return text;
}

double read_real(const std::string& argument, nb::handle object) {
  if (nb::hasattr(object, "shape") && nb::len(nb::object(object.attr("shape"))) == 0) {
    return read_real(argument, object.attr("item")());
  }
  if (!PyFloat_Check(object.ptr()) && !PyLong_Check(object.ptr())) {
    refuse(argument, object, "a number is allowed; pass a float");
  }
  const double number = PyFloat_AsDouble(object.ptr());
  if (PyErr_Occurred() == nullptr) return number;
  PyErr_Clear();
  throw Error(Status::invalid(argument + ": an int beyond every float; a finite number is allowed; "
                                         "pass a float"));
}

// An int of Python or NumPy in [lowest, highest].
template <class Integer>
Integer read_integer(const std::string& argument, nb::handle object, Integer lowest,
                     Integer highest) {
  if (PyBool_Check(object.ptr()) || !PyIndex_Check(object.ptr())) {
    refuse(argument, object, "an int is allowed; pass one");
  }
  const nb::object number = nb::steal(PyNumber_Index(object.ptr()));
  if (!number.is_valid()) throw nb::python_error();
  Integer value{};
  if (nb::try_cast(number, value) && value >= lowest && value <= highest) return value;
  throw Error(Status::invalid(argument + ": " + nb::str(number).c_str() + "; " +
                              std::to_string(lowest) + " to " + std::to_string(highest) +
                              " is allowed; pass a number in that range"));
}

std::int64_t read_int64(const std::string& argument, nb::handle object) {
  using Limits = std::numeric_limits<std::int64_t>;
  return read_integer<std::int64_t>(argument, object, Limits::min(), Limits::max());
}

std::optional<Start> read_start(const std::string& argument, nb::handle object, Options& options) {
  if (object.is_none()) return std::nullopt;
  if (!nb::hasattr(object, "shape")) return read_int64(argument, object);
  Array array = read_array(argument, object);
  if (array.view.rank == 0) return read_int64(argument, object.attr("item")());
  options.arrays.push_back(array);
  return array.view;
}

Argument read_argument(const std::string& name, nb::handle value, Options& options) {
  if (PyBool_Check(value.ptr())) return {name, nb::cast<bool>(value)};
  if (PyFloat_Check(value.ptr())) return {name, nb::cast<double>(value)};
  const std::string argument = "args: " + name;
  if (!nb::hasattr(value, "shape")) {
    if (PyIndex_Check(value.ptr())) return {name, read_int64(argument, value)};
    refuse(argument, value, "a bool, int, float or array is allowed; numpy.array(...) makes one");
  }
  if (nb::isinstance(value, nb::module_::import_("numpy").attr("generic"))) {
    return read_argument(name, value.attr("item")(), options);
  }
  options.arrays.push_back(read_array(argument, value));
  return {name, options.arrays.back().view};
}

Align read_align(nb::handle object) {
  const std::string align = read_text("align", object);
  if (align == "bottom_right") return Align::bottom_right;
  if (align == "top_left") return Align::top_left;
  throw Error(Status::invalid("align: \"" + align +
                              "\"; \"bottom_right\" and \"top_left\" are allowed; give q_start for "
                              "any other place"));
}

}  // namespace

Options read_options(const Keywords& keywords) {
  Options options;
  Attention& call = options.attention;
  call.mask = read_text("mask", keywords.mask);
  if (!keywords.score.is_none()) call.score = read_text("score", keywords.score);
  if (!keywords.definitions.is_none()) {
    call.definitions = read_text("definitions", keywords.definitions);
  }
  if (!keywords.scale.is_none()) call.scale = read_real("scale", keywords.scale);
  if (!keywords.args.is_none()) {
    if (!PyDict_Check(keywords.args.ptr())) {
      refuse("args", keywords.args,
             "a dict of name to bool, int, float or array is allowed; pass one");
    }
    for (auto [name, value] : nb::borrow<nb::dict>(keywords.args)) {
      call.args.push_back(read_argument(read_text("args", name), value, options));
    }
  }
  Array sink = read_optional("sink", keywords.sink);
  call.sink = sink.view;
  options.arrays.push_back(std::move(sink));
  call.dropout.p = read_real("dropout", keywords.dropout);
  call.dropout.seed = read_integer<std::uint64_t>("seed", keywords.seed, 0,
                                                  std::numeric_limits<std::uint64_t>::max());
  call.align = read_align(keywords.align);
  call.q_start = read_start("q_start", keywords.q_start, options);
  call.k_start = read_start("k_start", keywords.k_start, options);
  options.threads = read_threads(keywords.threads);
  return options;
}

bool read_flag(const std::string& argument, nb::handle object) {
  if (!PyBool_Check(object.ptr())) refuse(argument, object, "True or False is allowed; pass one");
  return object.ptr() == Py_True;
}

int read_threads(nb::handle object) {
  return object.is_none() ? 0 : read_integer<int>("threads", object, 0, max_threads);
}

}  // namespace onepass::python
