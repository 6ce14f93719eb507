#include "cpu/array_sums.h"

#include <algorithm>
#include <cstring>

#include "core/dense.h"
#include "cpu/backward.h"
#include "cpu/threads.h"

namespace onepass::cpu {
namespace {

constexpr std::int64_t most_chain_heads = 32;
// Elements that all chains together may copy, and those that even one chain copies at most where
// the gradient itself will do.
constexpr std::int64_t most_copied = std::int64_t{4} << 20;
constexpr std::int64_t small = std::int64_t{64} << 10;

std::int64_t elements_of(const Problem& p, std::size_t darg) {
  return p.dargs[darg].gradient.elements();
}

bool copied(const Problem& p, std::size_t darg) {
  return elements_of(p, darg) <= small || !dense(p.dargs[darg].gradient);
}

/// First copied element of a gradient in each chain's part.
std::int64_t copies_before(const Problem& p, std::size_t darg) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < darg; ++i) sum += copied(p, i) ? elements_of(p, i) : 0;
  return sum;
}

double* copies(const BackwardCall& call) {
  return reinterpret_cast<double*>(call.forward.workspace + call.sizes.arrays_offset);
}

// Bytes from the gradient's data to its element of that row-major number.
std::int64_t offset_of(const TensorView& view, std::int64_t number) {
  std::int64_t offset = 0;
  for (auto dim = static_cast<std::size_t>(view.rank); dim-- > 0;) {
    offset += number % view.shape[dim] * view.strides[dim];
    number /= view.shape[dim];
  }
  return offset * size_bytes(view.dtype);
}

}  // namespace

Chains chains_of(const Problem& p, std::int64_t ranges) {
  if (p.dargs.empty()) return {};
  Chains chains{.heads = most_chain_heads, .ranges = std::max<std::int64_t>(ranges, 1)};
  // Range r of every sequence holds the same keys.
  const bool ranges_agree = p.b == 1 || !(p.varlen() || p.k_start.array.given());
  for (const ArrayTerm& term : p.terms) {
    if (copied(p, static_cast<std::size_t>(term.darg))) continue;
    if (!term.own_head) chains.heads = 1;
    if (!term.own_key || (!term.own_head && !ranges_agree)) chains.ranges = 1;
  }
  const std::int64_t of_chain = std::max<std::int64_t>(copies_before(p, p.dargs.size()), 1);
  if (of_chain * chains.ranges > most_copied) chains.ranges = 1;
  const std::int64_t heads = std::max<std::int64_t>(p.b * p.h_kv, 1);
  const std::int64_t room = std::max<std::int64_t>(most_copied / (of_chain * chains.ranges), 1);
  chains.heads = std::min({chains.heads, heads, room});
  return chains;
}

std::int64_t array_sums_bytes(const Problem& p, const Chains& chains) {
  return chains.count() * copies_before(p, p.dargs.size()) *
         static_cast<std::int64_t>(sizeof(double));
}

bool varies_with_key(const lang::Program& place) {
  return (place.top().varies & lang::varies_key) != 0;
}

ArraySum array_sum(const BackwardCall& call, std::int64_t darg, std::int64_t head,
                   std::int64_t range) {
  const Problem& p = *call.forward.problem;
  const auto i = static_cast<std::size_t>(darg);
  if (!copied(p, i)) return {p.dargs[i].gradient.data, false};
  const Chains& chains = call.sizes.chains;
  const std::int64_t chain = head % chains.heads * chains.ranges + (chains.ranges > 1 ? range : 0);
  return {copies(call) + chain * copies_before(p, p.dargs.size()) + copies_before(p, i), true};
}

void clear_array_sums(const BackwardCall& call, int threads) {
  const Problem& p = *call.forward.problem;
  const std::int64_t of_chain = copies_before(p, p.dargs.size());
  parallel_for(threads, call.sizes.chains.count(), [&](std::int64_t chain, int) {
    std::fill_n(copies(call) + chain * of_chain, of_chain, 0.0);
  });
  for (std::size_t i = 0; i < p.dargs.size(); ++i) {
    const TensorView& gradient = p.dargs[i].gradient;
    if (copied(p, i)) continue;
    std::memset(gradient.data, 0,
                static_cast<std::size_t>(gradient.elements() * size_bytes(gradient.dtype)));
  }
}

void finish_array_sums(const BackwardCall& call, int threads) {
  constexpr std::int64_t block = 4096;
  const Problem& p = *call.forward.problem;
  const std::int64_t of_chain = copies_before(p, p.dargs.size());
  for (std::size_t i = 0; i < p.dargs.size(); ++i) {
    if (!copied(p, i)) continue;
    const TensorView& gradient = p.dargs[i].gradient;
    const std::int64_t elements = gradient.elements();
    const double* first = copies(call) + copies_before(p, i);
    parallel_for(threads, (elements + block - 1) / block, [&](std::int64_t part, int) {
      const std::int64_t end = std::min((part + 1) * block, elements);
      for (std::int64_t e = part * block; e < end; ++e) {
        double sum = 0.0;
        for (std::int64_t chain = 0; chain < call.sizes.chains.count(); ++chain) {
          sum += first[chain * of_chain + e];
        }
        std::byte* to = static_cast<std::byte*>(gradient.data) + offset_of(gradient, e);
        if (gradient.dtype == DType::float64) {
          std::memcpy(to, &sum, sizeof sum);
        } else {
          const auto narrow = static_cast<float>(sum);
          std::memcpy(to, &narrow, sizeof narrow);
        }
      }
    });
  }
}

}  // namespace onepass::cpu
