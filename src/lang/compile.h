// Text -> Program: parse, resolve names and definitions, check types, fold constants, share
// subterms.
#pragma once

#include <span>
#include <string_view>

#include "lang/program.h"
#include "onepass/attention.h"
#include "onepass/status.h"

namespace onepass::lang {

/// Compiles one expression. `arguments` are the call's named arguments (all of them; unused ones
/// are fine here, validate reports arguments that neither expression uses). `definitions` are the
/// caller's. Errors name the column (1-based): `mask, column 9: "kk" is not a name here; names:
/// ...; did you mean k?`
Result<Program> compile(std::string_view text, Kind kind, std::span<const Argument> arguments,
                        std::string_view definitions = {});

/// The program as canonical text (definitions expanded), for explain and cache keys.
std::string to_text(const Program& program);

}  // namespace onepass::lang
