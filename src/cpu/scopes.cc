#include "cpu/scopes.h"

#include <algorithm>
#include <new>

#include "cpu/sequences.h"
#include "lang/interval.h"

namespace onepass::cpu {
namespace {

constexpr std::int64_t alignment = 64;
constexpr std::int64_t record_bytes = (sizeof(ScopeRecord) + alignment - 1) / alignment * alignment;

/// The place of the record that query head `h` of sequence `b` uses.
std::byte* record_at(const ForwardCall& call, std::int64_t b, std::int64_t h) {
  const std::int64_t per_head = call.sizes.scopes_per_head;
  const SequenceWork& s = call.sequences[b];
  const std::int64_t records = h / call.group * per_head + h % call.group % per_head;
  return call.workspace + call.sizes.scopes_offset + s.scope_bytes_before * call.h_kv * per_head +
         s.scope_bytes * records - call.wave.first_scope_byte;
}

/// Drops the groups of keys at both ends that no query of the scope sees, by halves.
void trim_keys(const lang::Classifier& classifier, const lang::Scope& scope, ScopeRecord& record) {
  const auto hidden = [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t last = std::min(end * group_keys, scope.s_kv);
    return classifier.classify({0, scope.s_q, begin * group_keys, last}) == lang::TileKind::skip;
  };
  /// The most groups, of `count`, that `are_hidden(n)` says are hidden together.
  const auto most = [](std::int64_t count, const auto& are_hidden) {
    std::int64_t low = 0, high = count > 0 && are_hidden(1) ? count : 0;
    while (low < high) {
      const std::int64_t middle = (low + high + 1) / 2;
      are_hidden(middle) ? low = middle : high = middle - 1;
    }
    return low;
  };
  const std::int64_t groups = (scope.s_kv + group_keys - 1) / group_keys;
  record.seen_begin = most(groups, [&](std::int64_t n) { return hidden(0, n); });
  record.seen_end = groups - most(groups - record.seen_begin,
                                  [&](std::int64_t n) { return hidden(groups - n, groups); });
}

}  // namespace

std::int64_t scopes_per_head(const Problem& p) {
  const bool varies = (p.has_mask && (p.mask.top().varies & lang::varies_head)) ||
                      (p.has_score && (p.score.top().varies & lang::varies_head));
  return varies ? p.group : 1;
}

std::int64_t scope_bytes(const Problem& p, std::int64_t s_q, std::int64_t s_kv) {
  if (!p.has_mask && !p.has_score) return 0;
  const std::int64_t summaries =
      p.has_mask ? lang::Summaries::bytes(p.mask, s_q, s_kv) : std::int64_t{0};
  return record_bytes + (summaries + alignment - 1) / alignment * alignment;
}

void prepare_scope(const ForwardCall& call, std::int64_t item) {
  const std::int64_t per_head = call.sizes.scopes_per_head;
  const std::int64_t head = call.wave.first_head + item / per_head;  // over (b, h_kv)
  const std::int64_t b = head / call.h_kv, h = head % call.h_kv * call.group + item % per_head;
  const lang::Scope scope = call.problem->scope(b, h);
  std::byte* place = record_at(call, b, h);
  ScopeRecord record;
  if (call.mask) {
    record.summaries = lang::Summaries(*call.mask, scope, place + record_bytes);
    record.mask_int32 = lang::fits_int32(*call.mask, scope);
    trim_keys(lang::Classifier(*call.mask, scope, record.summaries), scope, record);
  }
  if (call.score) record.score_int32 = lang::fits_int32(*call.score, scope);
  new (place) ScopeRecord(record);
}

const ScopeRecord* scope_record(const ForwardCall& call, std::int64_t b, std::int64_t h) {
  return std::launder(reinterpret_cast<const ScopeRecord*>(record_at(call, b, h)));
}

bool any_query_sees(const ForwardCall& call, std::int64_t b, std::int64_t h_kv,
                    std::int64_t group) {
  if (!call.mask) return true;
  for (std::int64_t i = 0; i < call.sizes.scopes_per_head; ++i) {
    const ScopeRecord* record = scope_record(call, b, h_kv * call.group + i);
    if (group >= record->seen_begin && group < record->seen_end) return true;
  }
  return false;
}

}  // namespace onepass::cpu
