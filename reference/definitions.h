// The named masks and scores, and those of the caller.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reference/syntax.h"

namespace onepass::reference {

struct Parameter {
  std::string name;
  int rank = 0;        // dims of the index with which it is read; 0 = never with one
  bool alone = false;  // is read as a number
  /// Whether an array of `dims` dims (0 = a number) can stand for it.
  bool takes(int dims) const { return dims == 0 ? rank == 0 : rank == dims || (!rank && !alone); }
};

struct Definition {
  std::string name;
  std::vector<Parameter> parameters;
  Syntax body;
};

struct Function {
  Op op;
  std::size_t operands;
  bool in_masks;
};

/// null when there is none of this name.
const Function* find_function(const std::string& name);

/// The integer that a name stands for; the result is null for s and for what is no name.
std::int64_t Pair::*find_field(const std::string& name);

/// A name of the language, a function, or true, false, inf.
bool is_reserved(const std::string& word);

/// The named forms and the caller's definitions, for these arguments. Throws
/// std::invalid_argument when one has no meaning, also when nothing uses it.
std::vector<Definition> all_definitions(std::string_view text,
                                        const std::vector<Argument>& arguments);

}  // namespace onepass::reference
