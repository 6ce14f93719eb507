#include "cpu/scopes.h"

#include <new>

#include "lang/interval.h"

namespace onepass::cpu {
namespace {

constexpr std::int64_t alignment = 64;
constexpr std::int64_t record_bytes = (sizeof(ScopeRecord) + alignment - 1) / alignment * alignment;

std::byte* record_at(const ForwardCall& call, std::int64_t index) {
  return call.workspace + call.sizes.scopes_offset + index * call.sizes.scope_bytes;
}

}  // namespace

std::int64_t scopes_per_head(const Problem& p) {
  const bool varies = (p.has_mask && (p.mask.top().varies & lang::varies_head)) ||
                      (p.has_score && (p.score.top().varies & lang::varies_head));
  return varies ? p.group : 1;
}

std::int64_t scope_bytes(const Problem& p) {
  if (!p.has_mask && !p.has_score) return 0;
  const std::int64_t summaries =
      p.has_mask ? lang::Summaries::bytes(p.mask, p.s_q, p.s_kv) : std::int64_t{0};
  return record_bytes + (summaries + alignment - 1) / alignment * alignment;
}

void prepare_scope(const ForwardCall& call, std::int64_t item) {
  const std::int64_t per_head = call.sizes.scopes_per_head;
  const std::int64_t head = call.first_head + item / per_head;  // over (b, h_kv)
  const std::int64_t h = head % call.h_kv * call.group + item % per_head;
  const lang::Scope scope = call.problem->scope(head / call.h_kv, h);
  std::byte* place = record_at(call, item);
  ScopeRecord record;
  if (call.mask) {
    record.summaries = lang::Summaries(*call.mask, scope, place + record_bytes);
    record.mask_int32 = lang::fits_int32(*call.mask, scope);
  }
  if (call.score) record.score_int32 = lang::fits_int32(*call.score, scope);
  new (place) ScopeRecord(record);
}

const ScopeRecord* scope_record(const ForwardCall& call, std::int64_t query_head) {
  const std::int64_t per_head = call.sizes.scopes_per_head;
  const std::int64_t item = query_head / call.group * per_head + query_head % call.group % per_head;
  return std::launder(reinterpret_cast<const ScopeRecord*>(record_at(call, item)));
}

}  // namespace onepass::cpu
