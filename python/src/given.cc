#include "given.h"

#include "onepass/status.h"

namespace onepass::python {

Given::Given(const char* function, const std::vector<const char*>& names,
             const nb::args& positional, const nb::kwargs& keywords)
    : function_(std::string(function) + "()") {
  for (auto [name, value] : keywords) left_[name] = value;
  if (positional.size() > names.size()) {
    throw Error(Status::type_error(function_ + ": " + std::to_string(positional.size()) +
                                   " arguments by position; " + std::to_string(names.size()) +
                                   " are allowed; pass the others by name"));
  }
  auto name = names.begin();
  for (nb::handle value : positional) {
    if (left_.contains(*name)) {
      throw Error(Status::type_error(std::string(*name) + ": given twice to " + function_ +
                                     "; once is allowed; pass it by position or by name"));
    }
    left_[*name++] = value;
  }
}

nb::object Given::required(const char* name) {
  if (!left_.contains(name)) {
    throw Error(Status::type_error(std::string(name) + ": missing; " + function_ +
                                   " needs it; see help(onepass)"));
  }
  return optional(name);
}

nb::object Given::optional(const char* name) { return otherwise(name, nb::none()); }

nb::object Given::otherwise(const char* name, const nb::object& standard) {
  if (!left_.contains(name)) return standard;
  const nb::object value = left_[name];
  nb::del(left_[name]);
  return value;
}

void Given::end() const {
  for (auto [name, value] : left_) {
    throw Error(Status::type_error(std::string(nb::str(name).c_str()) + ": no argument of " +
                                   function_ + "; its own names are allowed; see help(onepass)"));
  }
}

}  // namespace onepass::python
