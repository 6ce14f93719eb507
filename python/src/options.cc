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
  const bool text = nb::isinstance<nb::str>(object);
  if (!text && nb::hasattr(object, "shape") && (argument == "mask" || argument == "score")) {
    refuse(argument, object,
           "a str is allowed; pass the array as args={\"m\": array}, 4 dims (b or 1, h or 1, s_q, "
           "s_kv), beside mask=\"dense(m)\" if True means visible, or score=\"bias(s, m)\" if it "
           "is added");
  }
  if (!text) {
    refuse(argument, object, "a str is allowed; write the expression as text");
  }
  std::string out;
  if (!nb::try_cast(object, out)) {
    throw Error(
        Status::invalid(argument + ": not valid Unicode; ASCII text is allowed; retype it"));
  }
  return out;
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

Options read_options(Given& given) {
  Options options;
  Attention& call = options.attention;
  const auto text = [&](const char* name, std::string& to) {
    if (const nb::object value = given.optional(name); !value.is_none()) {
      to = read_text(name, value);
    }
  };
  call.mask = read_text("mask", given.otherwise("mask", nb::str("full")));
  text("score", call.score);
  text("definitions", call.definitions);
  if (const nb::object scale = given.optional("scale"); !scale.is_none()) {
    call.scale = read_real("scale", scale);
  }
  if (const nb::object args = given.optional("args"); !args.is_none()) {
    if (!PyDict_Check(args.ptr())) {
      refuse("args", args, "a dict of name to bool, int, float or array is allowed; pass one");
    }
    for (auto [name, value] : nb::borrow<nb::dict>(args)) {
      call.args.push_back(read_argument(read_text("args", name), value, options));
    }
  }
  call.sink = keep(read_optional("sink", given.optional("sink")), options);
  call.align = read_align(given.otherwise("align", nb::str("bottom_right")));
  call.q_start = read_start("q_start", given.optional("q_start"), options);
  call.k_start = read_start("k_start", given.optional("k_start"), options);
  call.dropout = read_dropout(given, "dropout");
  options.threads = read_threads(given.optional("threads"));
  options.stream = given.optional("stream");
  return options;
}

Dropout read_dropout(Given& given, const char* p) {
  using Words = std::numeric_limits<std::uint64_t>;
  const auto number = [&](const char* name) { return given.otherwise(name, nb::int_(0)); };
  Dropout dropout;
  dropout.p = read_real(p, given.otherwise(p, nb::float_(0.0)));
  dropout.seed = read_integer<std::uint64_t>("seed", number("seed"), 0, Words::max());
  dropout.offset = read_integer<std::uint64_t>("offset", number("offset"), 0, Words::max());
  dropout.row0 = read_int64("row0", number("row0"));
  dropout.col0 = read_int64("col0", number("col0"));
  return dropout;
}

Options read_packed_options(Given& given) {
  Options options = read_options(given);
  const auto lengths = [&](const char* name, const nb::object& value) {
    return keep(read_optional(name, value), options);
  };
  Attention& call = options.attention;
  call.cu_seqlens_q = lengths("cu_seqlens_q", given.required("cu_seqlens_q"));
  call.cu_seqlens_k = lengths("cu_seqlens_k", given.required("cu_seqlens_k"));
  call.seqused_k = lengths("seqused_k", given.optional("seqused_k"));
  return options;
}

TensorView keep(Array array, Options& options) {
  const TensorView view = array.view;
  options.arrays.push_back(std::move(array));
  return view;
}

bool read_flag(const std::string& argument, nb::handle object) {
  if (!PyBool_Check(object.ptr())) refuse(argument, object, "True or False is allowed; pass one");
  return object.ptr() == Py_True;
}

int read_threads(nb::handle object) {
  return object.is_none() ? 0 : read_integer<int>("threads", object, 0, max_threads);
}

}  // namespace onepass::python
