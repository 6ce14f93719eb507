// Registry rows of the decode kernels: when they are taken, their sizes, their launch.
#include <algorithm>
#include <string>

#include "core/rounding.h"
#include "cpu/cache.h"
#include "cpu/decode.h"
#include "cpu/kernels.h"
#include "cpu/scopes.h"
#include "cpu/sequences.h"
#include "cpu/targets.h"
#include "cpu/threads.h"
#include "lang/evaluate.h"

namespace onepass::cpu {
namespace {

// Bytes of keys and values that pay for waking a thread.
constexpr double bytes_per_thread = 256 * 1024;

DecodeScratch scratch_of(const Problem& p, const DecodeSizes& sizes, const Form& form) {
  DecodeScratch map;
  const std::int64_t rows = sizes.heads * sizes.rows;
  const auto take = [&map](std::int64_t bytes) {
    const std::int64_t at = map.bytes;
    map.bytes += round_up(bytes, 64);
    return at;
  };
  map.q = take(rows * sizes.d_stride * form.real_bytes);
  map.s = take(rows * chunk_keys * form.real_bytes);
  map.o = take(rows * sizes.o_stride * form.real_bytes);
  map.block = take(block_keys * std::max(sizes.d_stride, sizes.o_stride) * form.real_bytes);
  map.visible = take(sizes.rows * chunk_keys);
  map.mask = take(p.has_mask ? lang::evaluator_scratch_bytes(p.mask) : 0);
  map.score = take(p.has_score ? lang::evaluator_scratch_bytes(p.score) : 0);
  return map;
}

/// Heads that lie side by side go into one item, so that memory is read in its order; fewer where
/// there are fewer items than threads.
std::int64_t heads_of_item(const Problem& p, const DecodeSizes& sizes, int threads) {
  const bool side_by_side = p.k.strides[2] < p.k.strides[1];
  std::int64_t heads = side_by_side ? std::min(p.h_kv, decode_item_rows / sizes.rows) : 1;
  while (heads > 1 && p.b * sizes.chunks * divide_up(p.h_kv, heads) < 2 * threads) {
    heads = (heads + 1) / 2;
  }
  return heads;
}

DecodeSizes decode_sizes(const Problem& p, const Form& form, int threads) {
  DecodeSizes sizes;
  sizes.chunks = divide_up(p.s_kv, chunk_keys);
  const std::int64_t rows = std::max<std::int64_t>(p.s_q * p.group, 1);
  sizes.rows = round_up(rows, decode_block_rows(rows, form.lanes));
  sizes.heads = std::max<std::int64_t>(heads_of_item(p, sizes, threads), 1);
  sizes.head_blocks = divide_up(p.h_kv, sizes.heads);
  sizes.d_stride = round_up(p.d, form.lanes);
  sizes.o_stride = round_up(p.d_v, form.lanes);
  sizes.scratch = scratch_of(p, sizes, form);
  sizes.part_bytes = (form.lanes + sizes.o_stride) * form.real_bytes;
  const std::int64_t heads = p.b * p.h_kv;
  sizes.scopes_offset = round_up(heads * sizes.chunks * sizes.rows * sizes.part_bytes, 64);
  sizes.sequences_offset =
      sizes.scopes_offset + heads * scopes_per_head(p) * scope_bytes(p, p.s_q, p.s_kv);
  sizes.scratch_offset = sizes.sequences_offset + sequences_bytes(p.b);
  sizes.workspace_bytes = sizes.scratch_offset + threads * sizes.scratch.bytes;
  return sizes;
}

template <Isa isa>
std::string refuse(const Problem& p, const Capabilities& capabilities) {
  if (std::string reason = refuse_isa(p, capabilities, isa); !reason.empty()) return reason;
  if (p.cu_seqlens_q.given() || p.cu_seqlens_k.given()) {
    return "lengths: packed sequences; this kernel takes a cache or whole ones";
  }
  if (p.dropout.p > 0.0) return "dropout: this kernel has none";
  if (p.s_q * p.group > decode_max_rows) {
    return "queries: " + std::to_string(p.s_q * p.group) + " of a key/value head; up to " +
           std::to_string(decode_max_rows) + " are taken";
  }
  // Of a cache s_kv is only the room that its longest sequence has: which kernel a sequence gets
  // must not depend on it.
  if (p.s_kv < decode_min_keys && !p.cache.given) {
    return "keys: " + std::to_string(p.s_kv) + "; at least " + std::to_string(decode_min_keys) +
           " pay for splitting them";
  }
  return {};
}

template <Isa isa>
void layout(const Problem& p, Plan& plan) {
  const double bytes = static_cast<double>(p.b) * static_cast<double>(p.h_kv) *
                       static_cast<double>(p.s_kv) * static_cast<double>(p.d + p.d_v) *
                       static_cast<double>(size_bytes(p.dtype));
  plan.threads = static_cast<int>(std::clamp(bytes / bytes_per_thread, 1.0, 1.0 * plan.threads));
  plan.tile = {.rows = p.s_q * p.group, .keys = chunk_keys};
  plan.splits = divide_up(p.s_kv, chunk_keys);
  plan.workspace_bytes =
      rotated_q_bytes(p) +
      decode_sizes(p, cpu::decode_kernels(isa, p.dtype)->form, plan.threads).workspace_bytes;
}

template <Isa isa>
Status launch(const Problem& p, const Plan& plan, const Exec& exec) {
  const DecodeKernels& kernels = *cpu::decode_kernels(isa, p.dtype);
  DecodeCall call;
  call.sizes = decode_sizes(p, kernels.form, plan.threads);
  call.forward = forward_call(p, exec.workspace);
  call.mask_varies_by_head = p.has_mask && (p.mask.top().varies & lang::varies_head);
  ForwardSizes& shared = call.forward.sizes;
  shared.tile_rows = static_cast<int>(decode_max_rows);
  shared.scopes_per_head = scopes_per_head(p);
  shared.scopes_offset = call.sizes.scopes_offset;
  shared.sequences_offset = call.sizes.sequences_offset;
  if (p.cache.given) update_cache(p, static_cast<std::byte*>(exec.workspace), plan.threads);
  list_sequences(call.forward);
  const std::int64_t heads = p.b * p.h_kv;
  if (p.has_mask || p.has_score) {
    const auto prepare = [&](std::int64_t item, int) { prepare_scope(call.forward, item); };
    parallel_for(plan.threads, heads * shared.scopes_per_head, prepare);
  }
  const auto run = [&](std::int64_t item, int thread) { kernels.run(call, item, thread); };
  parallel_for(plan.threads, p.b * call.sizes.chunks * call.sizes.head_blocks, run);
  const auto merge = [&](std::int64_t item, int thread) { kernels.merge(call, item, thread); };
  parallel_for(plan.threads, p.b * p.h_q, merge);
  return {};
}

template <Isa isa>
constexpr KernelRow row(const char* name) {
  return {name, Device::Kind::cpu, refuse<isa>, layout<isa>, launch<isa>};
}

constexpr KernelRow rows[] = {
    row<Isa::avx512>("cpu.decode.avx512"),
    row<Isa::avx2>("cpu.decode.avx2"),
    row<Isa::neon>("cpu.decode.neon"),
    row<Isa::baseline>("cpu.decode.baseline"),
};

}  // namespace

std::span<const KernelRow> decode_kernels() { return rows; }

}  // namespace onepass::cpu
