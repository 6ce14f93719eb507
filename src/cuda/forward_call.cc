#include "cuda/forward_call.h"

#include <cstring>

#include "lang/compile.h"
#include "lang/cuda_text.h"
#include "lang/interval.h"

namespace onepass::cuda {
namespace {

#include "shared/philox.h"

constexpr std::size_t most_parameter_bytes = 4096;  // of a kernel, on every GPU
constexpr std::int64_t most_scopes = 4096;          // that are looked at one by one

// As in kernels/forward_call.cuh.
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
  std::int64_t section_heads;
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

Forward forward_of(const Problem& p, std::int64_t section_heads) {
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
          .kept_scale = static_cast<float>(1.0 / (1.0 - dropout.p)),
          .section_heads = section_heads};
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

const char* element_name(DType dtype) {
  if (dtype == DType::bfloat16) return "onepass_text::Bfloat16";
  return dtype == DType::float16 ? "onepass_text::Float16" : "float";
}

// Whether the program's integers may differ between two (sequence, query head).
bool varies_with_scope(const lang::Program& program) {
  for (const lang::Node& node : program.nodes) {
    if (node.op != lang::Op::name) continue;
    switch (node.name) {
      case lang::Name::b:
      case lang::Name::h:
      case lang::Name::h_kv:
      case lang::Name::token_q:
      case lang::Name::token_k:
        return true;
      default:
        break;
    }
  }
  return false;
}

bool fits_int32(const Problem& p, const lang::Program& program) {
  if (!varies_with_scope(program)) return lang::fits_int32(program, p.scope(0, 0));
  if (p.b > most_scopes || p.b * p.h_q > most_scopes) return false;
  for (std::int64_t b = 0; b < p.b; ++b) {
    for (std::int64_t h = 0; h < p.h_q; ++h) {
      if (!lang::fits_int32(program, p.scope(b, h))) return false;
    }
  }
  return true;
}

}  // namespace

std::vector<std::byte> forward_call_bytes(const Problem& p, std::int64_t section_heads) {
  const Forward forward = forward_of(p, section_heads);
  std::vector<std::byte> bytes(sizeof forward);
  std::memcpy(bytes.data(), &forward, sizeof forward);
  bytes.reserve(call_size(p));
  for (const lang::Program* program : {&p.mask, &score_of(p)}) {
    const std::vector<std::byte> more = lang::cuda_text_parameters(*program);
    bytes.insert(bytes.end(), more.begin(), more.end());
  }
  return bytes;
}

ForwardTexts narrow_texts(const Problem& p) {
  return {p.has_mask && fits_int32(p, p.mask), p.has_score && fits_int32(p, p.score)};
}

std::string forward_preamble(const Problem& p, const Constants& constants,
                             const ForwardTexts& texts) {
  std::string text = lang::cuda_text_prelude() +
                     "namespace config {\nusing Element = " + element_name(p.dtype) +
                     ";\nusing Output = " + element_name(p.out_dtype) + ";\n";
  const auto add = [&](const Constants& some) {
    for (const auto& [name, value] : some) {
      text += std::string("constexpr int ") + name + " = " + std::to_string(value) + ";\n";
    }
  };
  add({{"d", p.d},
       {"d_v", p.d_v},
       {"has_mask", p.has_mask},
       {"has_score", p.has_score},
       {"has_lse", p.lse.given()},
       {"has_sink", p.sink.given()},
       {"has_dropout", p.dropout.p > 0.0}});
  add(constants);
  const bool fast = p.dtype != DType::float32;
  return text + "}  // namespace config\n" +
         lang::cuda_text(p.mask, {.name = "mask_text", .int32 = texts.mask_int32}) +
         lang::cuda_text(score_of(p),
                         {.name = "score_text", .int32 = texts.score_int32, .fast = fast});
}

std::string forward_configuration(const Problem& p, const Constants& constants,
                                  const ForwardTexts& texts) {
  std::string key;
  key.reserve(512);
  const auto add = [&](std::int64_t value) { key += std::to_string(value) += ' '; };
  add(static_cast<int>(p.dtype)), add(static_cast<int>(p.out_dtype)), add(p.d), add(p.d_v);
  add(p.lse.given()), add(p.sink.given()), add(p.dropout.p > 0.0);
  add(p.has_mask), add(p.has_score), add(texts.mask_int32), add(texts.score_int32);
  for (const auto& [name, value] : constants) add(value);
  lang::add_cuda_text_key(p.mask, key);
  lang::add_cuda_text_key(score_of(p), key);
  return key;
}

std::string refuse_forward(const Problem& p, const Capabilities& capabilities) {
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

}  // namespace onepass::cuda
