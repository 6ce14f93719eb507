// cuda.forward.generic: one kernel text for every forward call that has one length for all.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "cuda/forward_kernels.h"
#include "cuda/kernel.h"
#include "cuda/kernel_text.h"
#include "lang/compile.h"
#include "lang/cuda_text.h"

namespace onepass::cuda {
namespace {

#include "shared/philox.h"

constexpr std::int64_t tile_rows = 16, tile_keys = 32;  // as in kernels/forward_generic.cuh
constexpr std::uint32_t threads = 128;
constexpr std::int64_t most_blocks = 1 << 30;
constexpr std::size_t most_parameter_bytes = 4096;  // of a kernel, on every GPU

// As in kernels/forward_generic.cuh.
struct Strided {
  void* data = nullptr;
  std::int64_t b = 0, s = 0, h = 0, d = 0;
};
struct Forward {
  Strided q, k, v, o, lse, sink;
  std::int64_t b, h_q, group, s_q, s_kv, q_start, k_start;
  std::uint64_t seed, offset, threshold;
  std::int64_t row0, col0;
  float scale, kept_scale;
};

Strided strided(const TensorView& x) {
  return {x.data, x.strides[0], x.strides[1], x.strides[2], x.strides[3]};
}

Strided strided_rows(const TensorView& x) {
  if (!x.given()) return {};
  return {.data = x.data, .b = x.strides[0], .s = x.strides[2], .h = x.strides[1]};
}

Strided per_head(const TensorView& x) {
  if (!x.given()) return {};
  return {.data = x.data, .h = x.strides[0]};
}

Forward forward_of(const Problem& p) {
  const Dropout& dropout = p.dropout;
  return {.q = strided(p.q),
          .k = strided(p.k),
          .v = strided(p.v),
          .o = strided(p.o),
          .lse = strided_rows(p.lse),
          .sink = per_head(p.sink),
          .b = p.b,
          .h_q = p.h_q,
          .group = p.group,
          .s_q = p.s_q,
          .s_kv = p.s_kv,
          .q_start = p.q_start.number,
          .k_start = p.k_start.number,
          .seed = dropout.seed,
          .offset = dropout.offset,
          .threshold = dropout_threshold(dropout.p),
          .row0 = dropout.row0,
          .col0 = dropout.col0,
          .scale = static_cast<float>(p.scale),
          .kept_scale = static_cast<float>(1.0 / (1.0 - dropout.p))};
}

// The logit itself, where a call has no score.
const lang::Program& plain_score() {
  static const lang::Program program = lang::compile("s", lang::Kind::score, {}, "").value();
  return program;
}

const lang::Program& score_of(const Problem& p) { return p.has_score ? p.score : plain_score(); }

std::size_t call_size(const Problem& p) {
  return sizeof(Forward) + lang::cuda_text_parameter_bytes(p.mask) +
         lang::cuda_text_parameter_bytes(score_of(p));
}

// Forward and the parameters of both texts, one after the other as in the kernel's Call.
std::vector<std::byte> call_bytes(const Problem& p) {
  const Forward forward = forward_of(p);
  std::vector<std::byte> bytes(sizeof forward);
  std::memcpy(bytes.data(), &forward, sizeof forward);
  bytes.reserve(call_size(p));
  for (const lang::Program* program : {&p.mask, &score_of(p)}) {
    const std::vector<std::byte> more = lang::cuda_text_parameters(*program);
    bytes.insert(bytes.end(), more.begin(), more.end());
  }
  return bytes;
}

const char* element_name(DType dtype) {
  if (dtype == DType::bfloat16) return "onepass_text::Bfloat16";
  return dtype == DType::float16 ? "onepass_text::Float16" : "float";
}

std::string refuse(const Problem& p, const Capabilities& capabilities) {
  if (p.device.kind != Device::Kind::cuda || capabilities.device.kind != Device::Kind::cuda) {
    return "device: tensors on the CPU; this kernel runs on a GPU";
  }
  if (p.dtype == DType::float64) return "dtype: float64; this kernel takes float32 and 16-bit ones";
  if (p.cache.given) return "cache: this kernel takes k and v as plain tensors";
  if (p.varlen()) return "cu_seqlens, seqused_k: this kernel takes one length for all sequences";
  if (p.q_start.array.given() || p.k_start.array.given()) {
    return "q_start, k_start: arrays; this kernel takes numbers";
  }
  if (call_size(p) > most_parameter_bytes) {
    return "args: more than a kernel's 4096 bytes of parameters hold; use fewer";
  }
  return {};
}

void layout(const Problem&, Plan& plan) {
  plan.tile = {tile_rows, tile_keys};
  plan.threads = 1;
}

// Element types, head dims, what the call has.
std::string config_text(const Problem& p) {
  const auto constant = [](const char* type, const char* name, std::int64_t value) {
    return std::string("constexpr ") + type + " " + name + " = " + std::to_string(value) + ";\n";
  };
  return std::string("namespace config {\nusing Element = ") + element_name(p.dtype) +
         ";\nusing Output = " + element_name(p.out_dtype) + ";\n" + constant("int", "d", p.d) +
         constant("int", "d_v", p.d_v) + constant("bool", "has_lse", p.lse.given()) +
         constant("bool", "has_sink", p.sink.given()) +
         constant("bool", "has_dropout", p.dropout.p > 0.0) + "}  // namespace config\n";
}

std::vector<KernelSource> sources(const Problem& p) {
  std::string configuration;
  configuration.reserve(512);
  const auto add = [&](std::int64_t value) { configuration += std::to_string(value) += ' '; };
  add(static_cast<int>(p.dtype)), add(static_cast<int>(p.out_dtype)), add(p.d), add(p.d_v);
  add(p.lse.given()), add(p.sink.given()), add(p.dropout.p > 0.0);
  lang::add_cuda_text_key(p.mask, configuration);
  lang::add_cuda_text_key(score_of(p), configuration);
  return {{"forward_generic", std::move(configuration), generic_forward_source}};
}

Status launch(const Problem& p, const Plan& plan, const Exec& exec) {
  const std::int64_t tiles = p.b * p.h_q * ((p.s_q + tile_rows - 1) / tile_rows);
  if (tiles == 0) return {};
  const Grid grid{.blocks = static_cast<std::uint32_t>(std::min(tiles, most_blocks)),
                  .threads = threads};
  return launch_kernel(*plan.kernels[0], p.device.index, grid, exec.stream, call_bytes(p).data());
}

constexpr KernelRow rows[] = {
    {"cuda.forward.generic", Device::Kind::cuda, refuse, layout, launch, sources},
};

}  // namespace

std::span<const KernelRow> forward_kernels() { return rows; }

std::string generic_forward_source(const Problem& p) {
  const bool fast = p.dtype != DType::float32;
  return lang::cuda_text_prelude() + config_text(p) +
         lang::cuda_text(p.mask, {.name = "mask_text"}) +
         lang::cuda_text(score_of(p), {.name = "score_text", .fast = fast}) +
         kernel_text("cuda/kernels/forward_generic.cuh");
}

}  // namespace onepass::cuda
