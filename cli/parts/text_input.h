// A text's bytes as attention input, where no model is at hand.
#pragma once

#include <cstdint>
#include <string_view>

#include "cli/parts/array.h"

namespace onepass::cli {

struct TextInput {
  Array q;          // (1, s, 8, 64), float32
  Array k, v;       // (1, s, 2, 64)
  Array paragraph;  // (1, s), int32: rises by 1 at each empty line
};

/// Each byte becomes a seeded random vector plus a sinusoidal position (Vaswani et al. 2017), and
/// seeded random projections make q, k and v of it. Takes the first `longest` bytes. Throws Error
/// for an empty text.
TextInput text_input(std::string_view text, std::int64_t longest);

}  // namespace onepass::cli
