// What the module offers: each file binds its own functions and their docstrings.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "given.h"
#include "onepass/status.h"

namespace onepass::python {

void bind_forward(nb::module_& m);  // attention, attention_varlen, plan, explain
// attention_backward, attention_varlen_backward, plan_backward, dropout_mask
void bind_backward(nb::module_& m);
void bind_kvcache(nb::module_& m);  // attention_kvcache, plan_kvcache
void bind_merge(nb::module_& m);    // merge

/// Binds a function of Given.
template <class Function>
void bind(nb::module_& m, const char* name, const std::vector<const char*>& names,
          const std::string& signature, const char* doc, Function function) {
  m.def(
      name,
      [=](const nb::args& positional, const nb::kwargs& keywords) {
        Given given(name, names, positional, keywords);
        return function(given);
      },
      nb::sig((std::string("def ") + name + signature).c_str()), doc);
}

/// An argument as the library's messages name it, and as a Python caller does.
struct Renamed {
  std::string_view from, to;
};
inline constexpr Renamed out_alone[] = {{"o", "out"}};

[[noreturn]] inline void throw_renamed(const Error& error, std::span<const Renamed> names) {
  const std::string message = error.what();
  const std::string_view argument = std::string_view(message).substr(0, message.find(':'));
  for (const auto& [from, to] : names) {
    if (argument != from) continue;
    throw Error({error.code, std::string(to) + message.substr(from.size())});
  }
  throw error;
}

/// The function, with its errors' arguments renamed.
template <class Function>
auto naming(std::span<const Renamed> names, Function function) {
  return [=](Given& given) {
    try {
      return function(given);
    } catch (const Error& error) {
      throw_renamed(error, names);
    }
  };
}

template <class Function>
auto naming_out(Function function) {
  return naming(out_alone, function);
}

}  // namespace onepass::python
