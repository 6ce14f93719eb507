// The keywords of a Python call as the library's options.
#pragma once

#include <string>
#include <vector>

#include "arrays.h"
#include "given.h"
#include "onepass/attention.h"

namespace onepass::python {

/// The options with the arrays they point into.
struct Options {
  Attention attention;
  int threads = 0;
  nb::object stream;  // as given, or None
  std::vector<Array> arrays;
};

/// Takes the keywords that say what is computed; outputs are left alone. These throw
/// onepass::Error, which names the keyword.
Options read_options(Given& given);
/// The same with the lengths of packed sequences.
Options read_packed_options(Given& given);
/// The keywords of dropout alone; `p` is what the probability is called.
Dropout read_dropout(Given& given, const char* p);
/// The array's view; the array lives as long as the options.
TensorView keep(Array array, Options& options);
bool read_flag(const std::string& argument, nb::handle object);
int read_threads(nb::handle object);

}  // namespace onepass::python
