// Are gradients right? A few rows of dq against float64, dk and dv by what must add up.
#pragma once

#include "cli/parts/answer.h"
#include "cli/parts/case.h"

namespace onepass::cli {

/// Compares up to `rows` rows of dq of a finished bwd case, and holds dk and dv to two identities
/// of every key/value head: <k, dk> = <q, dq> and <v, dv> = <o, dout>. Throws Error.
Answer check_gradients(const Case& made, std::int64_t rows = 16);

}  // namespace onepass::cli
