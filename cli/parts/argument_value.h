// Values of arguments in a problem line: numbers, lists and arrays made for the line's sizes.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "cli/parts/array.h"
#include "core/problem_line.h"
#include "onepass/attention.h"

namespace onepass::cli {

/// What onepass --help says of them.
inline constexpr const char* argument_values =
    "a number, true, false; a list [5,9]; dtype[dims] with made-up values, dims being numbers or b "
    "h "
    "h_kv s_q s_kv; documents(n) (n documents, (b, positions)); lengths (b); alibi (slopes, (h)); "
    "random (float32[1,h,s_q,s_kv])";

/// Arrays are put into `arrays`. Throws Error with a message that names the argument.
decltype(Argument::value) argument_value(const LineArgument& argument, const ProblemLine& line,
                                         std::uint64_t seed, std::vector<Array>& arrays);

}  // namespace onepass::cli
