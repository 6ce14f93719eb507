// Test-only module: the C++ float64 reference, so that the NumPy one can be held against it.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "reference/attention.h"

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

nb::tuple attention(const Contiguous<double>& q, const Contiguous<double>& k,
                    const Contiguous<double>& v, const std::string& mask,
                    const std::optional<std::string>& score, std::optional<double> scale,
                    const std::optional<nb::dict>& args,
                    const std::optional<std::vector<double>>& sink, double dropout,
                    std::uint64_t seed, std::uint64_t offset, std::int64_t row0, std::int64_t col0,
                    const std::string& align,
                    const std::optional<std::vector<std::int64_t>>& q_start,
                    const std::optional<std::vector<std::int64_t>>& k_start,
                    const std::optional<std::string>& definitions) {
  reference::Options options;
  options.mask = mask;
  options.score = score.value_or("");
  options.definitions = definitions.value_or("");
  options.scale = scale;
  options.sink = sink.value_or(std::vector<double>{});
  options.top_left = align == "top_left";
  options.q_start = q_start.value_or(std::vector<std::int64_t>{});
  options.k_start = k_start.value_or(std::vector<std::int64_t>{});
  options.dropout = {dropout, seed, offset, row0, col0};
  if (args) {
    for (auto [name, value] : *args) {
      options.arguments.push_back(argument_of(nb::cast<std::string>(name), value));
    }
  }
  const auto result = reference::attention(tensor_of(q), tensor_of(k), tensor_of(v), options);
  return nb::make_tuple(numpy_of(result.o.data, {q.shape(0), q.shape(1), q.shape(2), v.shape(3)}),
                        numpy_of(result.lse, {q.shape(0), q.shape(2), q.shape(1)}));
}

}  // namespace

NB_MODULE(_reference_cpp, m) {
  m.def("attention", attention, "q"_a, "k"_a, "v"_a, nb::kw_only(), "mask"_a = "full",
        "score"_a = nb::none(), "scale"_a = nb::none(), "args"_a = nb::none(),
        "sink"_a = nb::none(), "dropout"_a = 0.0, "seed"_a = 0, "offset"_a = 0, "row0"_a = 0,
        "col0"_a = 0, "align"_a = "bottom_right", "q_start"_a = nb::none(),
        "k_start"_a = nb::none(), "definitions"_a = nb::none());
}
