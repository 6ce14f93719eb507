// compile() for the calls of a program, which say the same few expressions again and again.
#pragma once

#include <span>
#include <string_view>

#include "lang/compile.h"

namespace onepass::lang {

/// As compile(). What the last expressions gave is kept, for all threads, and given again where
/// text, definitions and the arguments' names, numbers, dtypes, shapes and strides are the same;
/// their addresses are the new ones.
Result<Program> compile_once(std::string_view text, Kind kind, std::span<const Argument> arguments,
                             std::string_view definitions = {});

/// Makes a program that was compiled with such arguments read the arrays of these ones, which have
/// the same dtypes, shapes and strides.
void point_to(std::span<const Argument> arguments, Program& program);

}  // namespace onepass::lang
