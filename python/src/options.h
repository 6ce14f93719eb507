// The keywords of a Python call as the library's options.
#pragma once

#include <string>
#include <vector>

#include "arrays.h"
#include "onepass/attention.h"

namespace onepass::python {

/// What the keywords of attention, plan and explain hold, unread.
struct Keywords {
  nb::object mask, score, scale, args, sink, dropout, seed, align, q_start, k_start, definitions,
      return_lse, out, out_dtype, threads;
};

/// The options with the arrays they point into.
struct Options {
  Attention attention;
  int threads = 0;
  std::vector<Array> arrays;
};

/// The rest throw onepass::Error, which names the keyword. `read_options` leaves the outputs alone.
Options read_options(const Keywords& keywords);
bool read_flag(const std::string& argument, nb::handle object);
int read_threads(nb::handle object);

}  // namespace onepass::python
