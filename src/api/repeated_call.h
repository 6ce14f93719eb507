// Calls to a GPU repeat: the same shapes and options on other addresses. Theirs cost microseconds,
// so that what an earlier call has checked, planned and prepared is used again.
#pragma once

#include "onepass/backward.h"

namespace onepass {

/// The arguments of attention() or, with a backward, of attention_backward().
struct Request {
  const TensorView &q, &k, &v, &o;
  const Backward* backward;  // null = forward
  const Attention& options;
};

/// Validates, checks the memory, plans, prepares, finds workspace, launches. Where the last calls
/// of this thread to a GPU had one that differs in addresses and in the dropout's seed and offset
/// only, what it gave is used and the memory alone is checked. Throws Error before anything is
/// written.
void run(const Request& request, const Exec& exec);

}  // namespace onepass
