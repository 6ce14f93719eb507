// A mask or score as source text for the GPU kernels: what the kernel compiler (NVRTC) sees of it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lang/program.h"

namespace onepass::lang {

struct CudaText {
  std::string name;    // namespace of the generated code, one per program in a source
  bool int32 = false;  // integers are `int`, as lang::fits_int32 allows; else `long long`
  bool fast = false;   // scores: approximate exp, log, tanh, division (16-bit kernels)
};

/// Types and helper functions that every generated text uses; once per source, before all of them.
/// Needs no header. Functions carry no execution space: compile with device as the default one.
std::string cuda_text_prelude();

/// The program as `namespace NAME` with
///   Parameters                   numbers and arrays, passed by value (cuda_text_parameters fills
///   it) PerScope, PerRow, PerKey     what varies with no position, with the row, with the key
///   per_scope(p, scope), per_row(p, c, row), per_key(p, c, col)   compute them
///   value(p, c, r, k[, s])       the pair's visibility (bool) or new logit (float); s: score only
/// A mask has besides, when some of its conditions are linear in the key, PerRow::first and ::last,
/// the columns that these allow (value checks them too), with `has_limits`; and `only_limits` if
/// nothing else has to hold.
///
/// Masks decide as the vector evaluator does: float32 operations that round one by one. Which dims
/// of an array have size 1 or stride 1 is part of the text.
std::string cuda_text(const Program& program, const CudaText& options);

/// Appends to `key`, in few bytes, all of the program that its text is made from: equal keys, equal
/// texts. Values of parameters, sizes and addresses are not among it.
void add_cuda_text_key(const Program& program, std::string& key);

/// The bytes of Parameters: addresses, shapes and strides of the program's arrays, and its numbers.
std::vector<std::byte> cuda_text_parameters(const Program& program);

/// How many these are.
std::size_t cuda_text_parameter_bytes(const Program& program);

}  // namespace onepass::lang
