// The backward's rows of the registry.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "cpu/backward.h"
#include "cpu/backward_sizes.h"
#include "cpu/kernels.h"
#include "cpu/scopes.h"
#include "cpu/sequences.h"
#include "cpu/targets.h"
#include "cpu/threads.h"

namespace onepass::cpu {
namespace {

BackwardCall backward_call(const Problem& p, const Form& form, const Plan& plan, void* workspace) {
  BackwardCall call;
  call.forward = forward_call(p, workspace);
  call.sizes = backward_sizes(p, form, plan, &call.forward.sizes);
  call.dout = strided(p.dout);
  call.dlse = strided_rows(p.dlse);
  const auto asked = [](const TensorView& view) {
    return view.given() && view.elements() > 0 ? strided(view) : Strided{};
  };
  call.dq = asked(p.dq), call.dk = asked(p.dk), call.dv = asked(p.dv);
  call.dsink = p.dsink.given();
  call.slope = p.has_score ? &p.slope : nullptr;
  call.terms = p.terms.data();
  call.term_count = static_cast<std::int64_t>(p.terms.size());
  const auto [of_q, rest] = scale_factors(p);
  call.forward.q_factor = of_q, call.logit_factor = rest;
  if (p.dropout.p > 0.0) call.kept_factor = 1.0 / (1.0 - p.dropout.p);
  return call;
}

/// Over sequences and query tiles, in order.
void sum_dsink(const Problem& p, const BackwardCall& call) {
  const auto* parts =
      reinterpret_cast<const double*>(call.forward.workspace + call.sizes.dsink_offset);
  for (std::int64_t h = 0; h < p.h_q; ++h) {
    double sum = 0.0;
    for (std::int64_t b = 0; b < p.b; ++b) {
      const SequenceWork& sequence = call.forward.sequences[b];
      const double* of_head = parts + row_tiles_before(call.forward, sequence, h);
      for (std::int64_t tile = 0; tile < sequence.row_tiles; ++tile) sum += of_head[tile];
    }
    const std::int64_t at = h * p.dsink.strides[0];
    if (p.dsink.dtype == DType::float64) {
      static_cast<double*>(p.dsink.data)[at] = sum;
    } else {
      static_cast<float*>(p.dsink.data)[at] = static_cast<float>(sum);
    }
  }
}

/// Keys that are not in use have no part in anything: zeros.
void clear_unused(const Problem& p, const Strided& gradient, std::int64_t width) {
  if (!gradient.data || !p.seqused_k.given()) return;
  for (std::int64_t b = 0; b < p.b; ++b) {
    const Sequence at = p.sequence(b);
    const std::int64_t end = p.cu_seqlens_k.given() ? integer_at(p.cu_seqlens_k, b + 1) : p.s_kv;
    for (std::int64_t row = at.k_row + at.s_kv; row < end; ++row) {
      for (std::int64_t h = 0; h < p.h_kv; ++h) {
        std::byte* to =
            gradient.data +
            (at.k_batch * gradient.b + row * gradient.s + h * gradient.h) * gradient.element_bytes;
        for (std::int64_t i = 0; i < width; ++i) {
          std::memset(to + i * gradient.d * gradient.element_bytes, 0,
                      static_cast<std::size_t>(gradient.element_bytes));
        }
      }
    }
  }
}

/// The items of a chain in order: heads, then key ranges.
void run_chain(const BackwardCall& call, const BackwardKernels& kernels, std::int64_t chain,
               int thread) {
  const Wave& wave = call.forward.wave;
  const Chains& chains = call.sizes.chains;
  const std::int64_t ranges = call.sizes.ranges;
  for (std::int64_t slot = 0; slot < wave.heads; ++slot) {
    if ((wave.first_head + slot) % chains.heads != chain / chains.ranges) continue;
    for (std::int64_t range = 0; range < ranges; ++range) {
      if (chains.ranges > 1 && range != chain % chains.ranges) continue;
      kernels.keys(call, slot * ranges + range, thread);
    }
  }
}

template <Isa isa>
std::string refuse(const Problem& p, const Capabilities& capabilities) {
  return refuse_isa(p, capabilities, isa);
}

template <Isa isa>
void layout(const Problem& p, Plan& plan) {
  choose_backward_tile(p, isa, plan);
  ForwardSizes unused;
  plan.workspace_bytes =
      backward_sizes(p, cpu::backward_kernels(isa, p.dtype)->form, plan, &unused).workspace_bytes;
}

template <Isa isa>
Status launch(const Problem& p, const Plan& plan, const Exec& exec) {
  const BackwardKernels& kernels = *cpu::backward_kernels(isa, p.dtype);
  BackwardCall call = backward_call(p, kernels.form, plan, exec.workspace);
  ForwardCall& forward = call.forward;
  const Wave& wave = forward.wave;
  using Kernel = void (*)(const BackwardCall&, std::int64_t, int);
  const auto loop = [&](std::int64_t items, Kernel kernel) {
    parallel_for(plan.threads, items,
                 [&](std::int64_t item, int thread) { kernel(call, item, thread); });
  };
  list_sequences(forward);
  if (!p.dargs.empty()) clear_array_sums(call, plan.threads);
  while (next_wave(forward, plan.threads)) {
    if (forward.mask || forward.score) {
      parallel_for(plan.threads, wave.heads * forward.sizes.scopes_per_head,
                   [&](std::int64_t item, int) { prepare_scope(forward, item); });
    }
    loop(wave.row_tiles, kernels.delta);
    if (p.dargs.empty()) {
      loop(wave.heads * call.sizes.ranges, kernels.keys);
    } else {
      parallel_for(plan.threads, call.sizes.chains.count(), [&](std::int64_t chain, int thread) {
        run_chain(call, kernels, chain, thread);
      });
    }
    if (call.dq.data) loop(wave.row_tiles, kernels.queries);
  }
  if (!p.dargs.empty()) finish_array_sums(call, plan.threads);
  if (call.dsink) sum_dsink(p, call);
  clear_unused(p, call.dk, p.d);
  clear_unused(p, call.dv, p.d_v);
  return {};
}

template <Isa isa>
constexpr KernelRow row(const char* name) {
  return {name, Device::Kind::cpu, refuse<isa>, layout<isa>, launch<isa>};
}

constexpr KernelRow rows[] = {
    row<Isa::avx512>("cpu.backward.avx512"),
    row<Isa::avx2>("cpu.backward.avx2"),
    row<Isa::neon>("cpu.backward.neon"),
    row<Isa::baseline>("cpu.backward.baseline"),
};

}  // namespace

std::span<const KernelRow> backward_kernels() { return rows; }

}  // namespace onepass::cpu
