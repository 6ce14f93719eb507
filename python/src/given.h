// The arguments of one Python call by name.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

namespace onepass::python {

namespace nb = nanobind;

/// Positional arguments first, keywords after, as Python binds them; each is taken once. Throws
/// onepass::Error, which names the argument.
class Given {
 public:
  /// `names`: the arguments that may stand by position, in order.
  Given(const char* function, const std::vector<const char*>& names, const nb::args& positional,
        const nb::kwargs& keywords);

  nb::object required(const char* name);
  /// None where it was not given.
  nb::object optional(const char* name);
  nb::object otherwise(const char* name, const nb::object& standard);
  /// Refuses what nobody took.
  void end() const;

 private:
  std::string function_;
  nb::dict left_;
};

}  // namespace onepass::python
