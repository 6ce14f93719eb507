// The shapes of arrays that named forms read: a head of its own for each slope, and the like.
#pragma once

#include "core/problem.h"

namespace onepass {

/// A dim that a named form indexes by b or h has 1 element or one for each of them; one indexed by
/// row or col has 1 or no fewer than there are, where all sequences are equally long. Expressions
/// of the caller's own read 0 beyond an array's end instead, as the language says.
Status check_form_arrays(const Problem& p);

}  // namespace onepass
