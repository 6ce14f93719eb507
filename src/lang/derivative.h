// Symbolic derivative of a score: with respect to the logit and to elements of float arrays.
#pragma once

#include <vector>

#include "lang/program.h"

namespace onepass::lang {

/// d score / d s as a program of its own (Kind::score; root may be any real node).
Program derivative_logit(const Program& score);

/// d score / d array[index] for one Op::load node of the program: the factor, and the load's index
/// nodes inside the same program. A float array read at two places has two of these.
struct ArrayDerivative {
  std::int32_t array = -1;     // index in Program::arrays
  Program factor;              // d score / d (this load)
  std::vector<Program> index;  // one integer program per dim of the load
  Program place;               // row-major number of the element read, as a float; -1 = outside
};
std::vector<ArrayDerivative> derivative_arrays(const Program& score);

}  // namespace onepass::lang
