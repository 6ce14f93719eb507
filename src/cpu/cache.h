// What a call over a cache does before attention: new keys and values into their slots, rotation.
#pragma once

#include "core/problem.h"

namespace onepass::cpu {

/// Bytes that rotated queries take in the workspace, a multiple of 64; 0 without rotary.
std::int64_t rotated_q_bytes(const Problem& problem);

/// Puts k_new, rotated where asked for, and v_new into the cache; rotates q into `rotated_q`, which
/// is contiguous (b, s_q, h_q, d) in q's dtype.
void update_cache(const Problem& problem, std::byte* rotated_q, int threads);

}  // namespace onepass::cpu
