// What the kernels must know of each (sequence, head) before its tiles are classified.
#pragma once

#include <cstdint>

#include "core/problem.h"
#include "cpu/forward.h"
#include "lang/summaries.h"

namespace onepass::cpu {

/// Shared by all heads of a group unless an expression varies with the head.
struct ScopeRecord {
  lang::Summaries summaries;
  bool mask_int32 = false;  // lang::fits_int32
  bool score_int32 = false;
  std::int64_t seen_begin = 0, seen_end = 0;  // groups of keys that some query may see
};

/// Records for each key/value head: 1, or the whole group.
std::int64_t scopes_per_head(const Problem& problem);

/// Bytes of a record with its summaries for a sequence of these lengths; a multiple of 64.
std::int64_t scope_bytes(const Problem& problem, std::int64_t s_q, std::int64_t s_kv);

/// Makes record `item` of the wave in its place in the workspace.
void prepare_scope(const ForwardCall& call, std::int64_t item);

/// The record of query head `h` of sequence `b`, of the wave.
const ScopeRecord* scope_record(const ForwardCall& call, std::int64_t b, std::int64_t h);

/// Some query of the key/value head may see this group of keys: what none sees is not packed.
bool any_query_sees(const ForwardCall& call, std::int64_t b, std::int64_t h_kv, std::int64_t group);

}  // namespace onepass::cpu
