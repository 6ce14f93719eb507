// Is an output right? A few rows of it against the float64 reference.
#pragma once

#include <cstdint>
#include <string>

#include "core/problem.h"
#include "onepass/attention.h"

namespace onepass::cli {

struct Answer {
  double error = 0.0;     // largest difference to float64 in the rows compared, NaN if one is
  double relative = 0.0;  // over the largest reference value there
  double allowed = 0.0;   // what the error may be (docs/semantics.md)
  std::int64_t rows = 0;  // compared
  bool right() const { return error <= allowed; }
};

/// What to say of a wrong answer to a problem line.
std::string complaint(const Answer& answer, const std::string& line);

/// Compares up to `rows` rows of a finished call, spread over sequences, heads and queries.
/// Throws Error.
Answer check_answer(const TensorView& q, const TensorView& k, const TensorView& v,
                    const TensorView& o, const Attention& options, std::int64_t rows = 16);

}  // namespace onepass::cli
