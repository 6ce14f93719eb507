// What the module offers: each file binds its own functions and their docstrings.
#pragma once

#include <string>
#include <vector>

#include "given.h"
#include "onepass/status.h"

namespace onepass::python {

void bind_forward(nb::module_& m);   // attention, attention_varlen, plan, explain
void bind_backward(nb::module_& m);  // attention_backward, attention_varlen_backward, dropout_mask
void bind_kvcache(nb::module_& m);   // attention_kvcache
void bind_merge(nb::module_& m);     // merge

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

/// What the library calls o is `out` to a Python caller.
template <class Function>
auto naming_out(Function function) {
  return [=](Given& given) {
    try {
      return function(given);
    } catch (const Error& error) {
      const std::string message = error.what();
      if (message.rfind("o: ", 0) != 0) throw;
      throw Error({error.code, "out" + message.substr(1)});
    }
  };
}

}  // namespace onepass::python
