#include "cpu/kernels.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <string>

#include "cpu/cache.h"
#include "cpu/forward.h"
#include "cpu/scopes.h"
#include "cpu/sequences.h"
#include "cpu/sizes.h"
#include "cpu/targets.h"
#include "cpu/threads.h"

namespace onepass::cpu {

Strided strided(const TensorView& view) {
  return {.data = static_cast<std::byte*>(view.data),
          .dtype = view.dtype,
          .element_bytes = size_bytes(view.dtype),
          .b = view.strides[0],
          .s = view.strides[1],
          .h = view.strides[2],
          .d = view.strides[3]};
}

Strided strided_rows(const TensorView& view) {
  Strided rows;
  if (!view.given()) return rows;
  rows = strided(view);
  rows.h = view.strides[1], rows.s = view.strides[2], rows.d = 0;
  return rows;
}

ScaleFactors scale_factors(const Problem& p) {
  const bool wide = p.dtype == DType::float64;
  const double smallest = wide ? DBL_MIN : FLT_MIN;
  const double largest = (wide ? DBL_MAX : FLT_MAX) / 2;  // times log2(e)
  const double size = std::abs(p.scale);
  if (size <= smallest * smallest) return {p.scale, 1.0};
  if (size >= smallest && size <= largest) return {1.0, p.scale};
  const int half = std::ilogb(size) / 2;
  return {std::ldexp(1.0, half), std::ldexp(p.scale, -half)};
}

namespace {

/// Weights are e^(weight_scale * score - max): weight_scale is positive, so that the largest score
/// has the largest weight, and the sign goes into Q. A score expression takes the logit in natural
/// units.
void split_scale(const Problem& p, ForwardCall& call) {
  const auto [of_q, rest] = scale_factors(p);
  call.q_factor = of_q;
  if (p.has_score) {
    call.score_scale = rest;
    return;
  }
  call.weight_scale = std::abs(rest);
  if (rest < 0) call.q_factor = -of_q;
}

}  // namespace

ForwardCall forward_call(const Problem& p, void* workspace) {
  ForwardCall call;
  call.b = p.b, call.h_q = p.h_q, call.h_kv = p.h_kv, call.group = p.group;
  call.d = p.d, call.d_v = p.d_v;
  call.q = strided(p.q), call.k = strided(p.k), call.v = strided(p.v), call.o = strided(p.o);
  call.lse = strided_rows(p.lse);
  if (p.sink.given()) {
    call.sink = strided(p.sink);
    call.sink.h = p.sink.strides[0];
  }
  call.problem = &p;
  call.mask = p.has_mask ? &p.mask : nullptr;
  call.score = p.has_score ? &p.score : nullptr;
  call.dropout = p.dropout.p > 0.0 ? &p.dropout : nullptr;
  split_scale(p, call);
  call.page_size = p.cache.page_size;
  call.workspace = static_cast<std::byte*>(workspace);
  if (p.cache.cos.given()) {  // rotated queries lie before the rest
    call.q = strided(TensorView(workspace, p.dtype, {p.b, p.s_q, p.h_q, p.d}));
    call.workspace += rotated_q_bytes(p);
  }
  return call;
}

std::string refuse_isa(const Problem& p, const Capabilities& capabilities, Isa isa) {
  if (p.device.kind != Device::Kind::cpu)
    return "device: tensors on a GPU; this kernel runs on the CPU";
  const std::vector<Isa>& isas = capabilities.isas;
  if (std::find(isas.begin(), isas.end(), isa) != isas.end()) return {};
  std::string reason = std::string("instruction set: ") + name(isa) + "; used here:";
  for (const Isa used : isas) reason += std::string(" ") + name(used);
  return reason;
}

namespace {

template <Isa isa>
std::string refuse(const Problem& p, const Capabilities& capabilities) {
  if (std::string reason = refuse_isa(p, capabilities, isa); !reason.empty()) return reason;
  if (!cpu::forward_kernels(isa, p.dtype)) {
    return std::string("dtype: ") + name(p.dtype) + "; this kernel takes bfloat16";
  }
  return {};
}

template <Isa isa>
void layout(const Problem& p, Plan& plan) {
  choose_tile(p, isa, plan);
  plan.workspace_bytes =
      rotated_q_bytes(p) +
      forward_sizes(p, cpu::forward_kernels(isa, p.dtype)->form, plan).workspace_bytes;
}

template <Isa isa>
Status launch(const Problem& p, const Plan& plan, const Exec& exec) {
  const ForwardKernels& kernels = *cpu::forward_kernels(isa, p.dtype);
  ForwardCall call = forward_call(p, exec.workspace);
  call.sizes = forward_sizes(p, kernels.form, plan);
  if (p.cache.given) update_cache(p, static_cast<std::byte*>(exec.workspace), plan.threads);
  list_sequences(call);
  const Wave& wave = call.wave;
  while (next_wave(call, plan.threads)) {
    const auto prepare = [&](std::int64_t item, int) { prepare_scope(call, item); };
    if (call.mask || call.score) {
      parallel_for(plan.threads, wave.heads * call.sizes.scopes_per_head, prepare);
    }
    const auto pack = [&](std::int64_t item, int thread) { kernels.pack(call, item, thread); };
    parallel_for(plan.threads, wave.groups, pack);
    const auto run = [&](std::int64_t item, int thread) { kernels.run(call, item, thread); };
    parallel_for(plan.threads, wave.row_tiles, run);
  }
  return {};
}

template <Isa isa>
constexpr KernelRow row(const char* name) {
  return {name, Device::Kind::cpu, refuse<isa>, layout<isa>, launch<isa>};
}

constexpr KernelRow rows[] = {
    row<Isa::avx512_bf16>("cpu.forward.avx512_bf16"),
    row<Isa::avx512>("cpu.forward.avx512"),
    row<Isa::avx2>("cpu.forward.avx2"),
    row<Isa::neon>("cpu.forward.neon"),
    row<Isa::baseline>("cpu.forward.baseline"),
};

}  // namespace

std::span<const KernelRow> forward_kernels() { return rows; }

}  // namespace onepass::cpu
