// Test-only module: the C++ float64 reference, so that the NumPy one can be held against it.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "reference/attention.h"
#include "reference/backward.h"

namespace nb = nanobind;
using namespace nb::literals;  // NOLINT: "name"_a
namespace reference = onepass::reference;

namespace {

template <class T>
using Contiguous = nb::ndarray<const T, nb::c_contig, nb::ro, nb::device::cpu>;

reference::Tensor tensor_of(const Contiguous<double>& array) {
  reference::Tensor tensor;
  for (std::size_t i = 0; i < 4; ++i) tensor.shape[i] = static_cast<std::int64_t>(array.shape(i));
  tensor.data.assign(array.data(), array.data() + array.size());
  return tensor;
}

// A bool, int, float, or a contiguous array of bool, int64 or float64.
reference::Argument argument_of(const std::string& name, nb::handle value) {
  if (PyBool_Check(value.ptr())) return {name, nb::cast<bool>(value)};
  if (PyLong_Check(value.ptr())) return {name, nb::cast<std::int64_t>(value)};
  if (PyFloat_Check(value.ptr())) return {name, nb::cast<double>(value)};
  reference::Array array;
  const auto fill = [&](const auto& memory, auto& target) {
    for (std::size_t i = 0; i < memory.ndim(); ++i) {
      array.shape.push_back(static_cast<std::int64_t>(memory.shape(i)));
    }
    target.assign(memory.data(), memory.data() + memory.size());
  };
  Contiguous<double> reals;
  Contiguous<std::int64_t> integers;
  if (nb::try_cast(value, reals, false)) {
    array.type = reference::Type::real;
    fill(reals, array.reals);
  } else if (nb::try_cast(value, integers, false)) {
    array.type = reference::Type::integer;
    fill(integers, array.integers);
  } else {
    array.type = reference::Type::boolean;
    fill(nb::cast<Contiguous<bool>>(value), array.integers);
  }
  return {name, array};
}

nb::object numpy_of(const std::vector<double>& data, const std::vector<std::size_t>& shape) {
  auto* copy = new std::vector<double>(data);
  nb::capsule owner(copy, [](void* p) noexcept { delete static_cast<std::vector<double>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, double>(copy->data(), shape.size(), shape.data(), owner));
}

nb::object numpy_of(const reference::Tensor& tensor) {
  return numpy_of(tensor.data, {tensor.shape.begin(), tensor.shape.end()});
}

reference::Options options_of(const nb::kwargs& given) {
  reference::Options options;
  const auto take = [&](const char* name, auto& target) {
    if (!given.contains(name) || given[name].is_none()) return;
    target = nb::cast<std::decay_t<decltype(target)>>(given[name]);
  };
  std::string align;
  nb::dict args;
  take("mask", options.mask), take("score", options.score);
  take("definitions", options.definitions), take("scale", options.scale);
  take("sink", options.sink), take("align", align), take("args", args);
  take("q_start", options.q_start), take("k_start", options.k_start);
  take("dropout", options.dropout.p), take("seed", options.dropout.seed);
  take("offset", options.dropout.offset);
  take("row0", options.dropout.row0), take("col0", options.dropout.col0);
  options.top_left = align == "top_left";
  for (auto [name, value] : args) {
    options.arguments.push_back(argument_of(nb::cast<std::string>(name), value));
  }
  return options;
}

// -> o, lse
nb::tuple attention(const Contiguous<double>& q, const Contiguous<double>& k,
                    const Contiguous<double>& v, const nb::kwargs& options) {
  const auto result =
      reference::attention(tensor_of(q), tensor_of(k), tensor_of(v), options_of(options));
  return nb::make_tuple(numpy_of(result.o),
                        numpy_of(result.lse, {q.shape(0), q.shape(2), q.shape(1)}));
}

// -> dq, dk, dv, dsink, {name: darg as one line}
nb::tuple attention_backward(const Contiguous<double>& dout, const Contiguous<double>& q,
                             const Contiguous<double>& k, const Contiguous<double>& v,
                             const std::optional<Contiguous<double>>& dlse,
                             const nb::kwargs& options) {
  std::vector<double> dlse_data;
  if (dlse) dlse_data.assign(dlse->data(), dlse->data() + dlse->size());
  const auto result = reference::attention_backward(tensor_of(dout), tensor_of(q), tensor_of(k),
                                                    tensor_of(v), options_of(options), dlse_data);
  nb::dict darguments;
  for (const auto& [name, values] : result.darguments) {
    darguments[name.c_str()] = numpy_of(values, {values.size()});
  }
  return nb::make_tuple(numpy_of(result.dq), numpy_of(result.dk), numpy_of(result.dv),
                        numpy_of(result.dsink, {result.dsink.size()}), darguments);
}

}  // namespace

NB_MODULE(_reference_cpp, m) {
  m.def("attention", attention, "q"_a, "k"_a, "v"_a, "options"_a);
  m.def("attention_backward", attention_backward, "dout"_a, "q"_a, "k"_a, "v"_a, nb::kw_only(),
        "dlse"_a = nb::none(), "options"_a);
}
