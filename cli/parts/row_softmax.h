// Row operations of manual attention.
#pragma once

#include <cstdint>

namespace onepass::cli {

void scale_row(float* row, std::int64_t n, float scale);

/// -inf where the mask is 0.
void hide_row(float* row, const std::uint8_t* mask, std::int64_t n);

/// Row becomes its softmax, with one more logit `sink` in the sum (-inf = none). A row of -inf
/// becomes zeros.
void softmax_row(float* row, std::int64_t n, float sink);

}  // namespace onepass::cli
