#include "cuda/call_parts.h"

#include <cfloat>
#include <cmath>

#include "lang/compile.h"
#include "lang/cuda_text.h"
#include "lang/interval.h"

namespace onepass::cuda {
namespace {

#include "shared/philox.h"

constexpr std::int64_t most_scopes = 4096;  // that are looked at one by one

// A name whose value differs between two (sequence, query head).
bool of_scope(const lang::Node& node) {
  if (node.op != lang::Op::name) return false;
  switch (node.name) {
    case lang::Name::b:
    case lang::Name::h:
    case lang::Name::h_kv:
    case lang::Name::token_q:
    case lang::Name::token_k:
      return true;
    default:
      return false;
  }
}

// Whether integers are computed from such names; as an index they are only looked up.
bool computes_with_scope(const lang::Program& program) {
  for (const lang::Node& node : program.nodes) {
    if (node.op == lang::Op::load) continue;
    for (std::size_t i = 0; i < node.operands; ++i) {
      if (of_scope(program.nodes[static_cast<std::size_t>(node.operand[i])])) return true;
    }
  }
  return false;
}

// Their values are not known here.
bool loads_int64(const lang::Program& program) {
  for (const lang::Node& node : program.nodes) {
    if (node.op != lang::Op::load) continue;
    const lang::Array& array = program.arrays[static_cast<std::size_t>(node.slot)];
    if (array.view.dtype == DType::int64) return true;
  }
  return false;
}

}  // namespace

Strided strided(const TensorView& x) {
  if (!x.given()) return {};
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

CallShape shape_of(const Problem& p) {
  const Dropout& dropout = p.dropout;
  return {.b = p.b,
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

const char* element_name(DType dtype) {
  if (dtype == DType::bfloat16) return "onepass_text::Bfloat16";
  return dtype == DType::float16 ? "onepass_text::Float16" : "float";
}

const lang::Program& score_of(const Problem& p) {
  static const lang::Program logit = lang::compile("s", lang::Kind::score, {}, "").value();
  return p.has_score ? p.score : logit;
}

void append_parameters(std::initializer_list<const lang::Program*> programs,
                       std::vector<std::byte>& call) {
  for (const lang::Program* program : programs) {
    const std::vector<std::byte> more = lang::cuda_text_parameters(*program);
    call.insert(call.end(), more.begin(), more.end());
  }
}

std::string constants_text(const Constants& constants) {
  std::string text;
  for (const auto& [name, value] : constants) {
    text += std::string("constexpr int ") + name + " = " + std::to_string(value) + ";\n";
  }
  return text;
}

bool fits_int32(const Problem& p, const lang::Program& program) {
  if (loads_int64(program)) return false;
  if (!computes_with_scope(program)) return lang::fits_int32(program, p.scope(0, 0));
  if (p.b > most_scopes || p.b * p.h_q > most_scopes) return false;
  for (std::int64_t b = 0; b < p.b; ++b) {
    for (std::int64_t h = 0; h < p.h_q; ++h) {
      if (!lang::fits_int32(program, p.scope(b, h))) return false;
    }
  }
  return true;
}

std::string refuse_call(const Problem& p, const Capabilities& capabilities) {
  if (p.device.kind != Device::Kind::cuda || capabilities.device.kind != Device::Kind::cuda) {
    return "device: tensors on the CPU; this kernel runs on a GPU";
  }
  if (p.dtype == DType::float64) return "dtype: float64; this kernel takes float32 and 16-bit ones";
  if (std::abs(p.scale) > FLT_MAX) {
    return "scale: beyond float32; this kernel takes what float32 holds";
  }
  if (p.cache.given) return "cache: this kernel takes k and v as plain tensors";
  if (p.varlen()) return "cu_seqlens, seqused_k: this kernel takes one length for all sequences";
  if (p.q_start.array.given() || p.k_start.array.given()) {
    return "q_start, k_start: arrays; this kernel takes numbers";
  }
  return {};
}

}  // namespace onepass::cuda
