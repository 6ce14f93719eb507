// Validation of a call over a cache of keys and values.
#pragma once

#include "core/problem.h"
#include "onepass/kv_cache.h"

namespace onepass {

/// Like validate: reads no memory.
Result<Problem> validate(const TensorView& q, const KvCache& cache, const TensorView& o,
                         const Attention& options);

/// Pointers, lengths, pages and places: every key that the call reads or writes lies in the cache,
/// and what it writes is no input. Ok where there is no cache.
Status check_cache(const Problem& problem);

}  // namespace onepass
