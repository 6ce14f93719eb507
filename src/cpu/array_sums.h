// Gradients of score arrays without a conflict and in a fixed order. The work items (key ranges of
// heads) form chains: a chain runs its items one after the other, and no two chains add to the same
// numbers. Small arrays, and those that are not dense, get a copy for each chain, added up in order
// at the end; of others the chains are made so that each element belongs to one. All of it depends
// on the problem alone, not on the threads.
#pragma once

#include <cstdint>

#include "core/problem.h"

namespace onepass::cpu {

struct BackwardCall;

/// Head `head` (over (b, h_kv)) and key range `range` belong to chain
/// (head % heads) * ranges + (ranges > 1 ? range : 0).
struct Chains {
  std::int64_t heads = 0;  // 0 = each item is its own: no array is asked for
  std::int64_t ranges = 1;
  std::int64_t count() const { return heads * ranges; }
};

/// For key/value heads of at most `ranges` key ranges.
Chains chains_of(const Problem& problem, std::int64_t ranges);

/// Bytes of the chains' copies in the workspace.
std::int64_t array_sums_bytes(const Problem& problem, const Chains& chains);

/// Whether the elements a row reads differ by key.
bool varies_with_key(const lang::Program& place);

/// Where one chain adds up a gradient: doubles, or the gradient itself.
struct ArraySum {
  void* data = nullptr;
  bool doubles = false;
};
ArraySum array_sum(const BackwardCall& call, std::int64_t darg, std::int64_t head,
                   std::int64_t range);

/// Zeros before the first item.
void clear_array_sums(const BackwardCall& call, int threads);

/// The copies into the gradients, after the last item.
void finish_array_sums(const BackwardCall& call, int threads);

}  // namespace onepass::cpu
