#include "cuda/forward_call.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "lang/cuda_text.h"

namespace onepass::cuda {
namespace {

// As in kernels/forward_call.cuh.
struct Forward {
  CallShape shape;
  Strided q, k, v, o, lse, sink;
  std::int64_t section_heads;
};

Strided from_column(const TensorView& x, std::int64_t column) {
  Strided out = strided(x);
  out.data = static_cast<char*>(out.data) + column * x.strides[3] * size_bytes(x.dtype);
  return out;
}

Forward forward_of(const Problem& p, std::int64_t section_heads, std::int64_t first_column) {
  return {.shape = shape_of(p),
          .q = strided(p.q),
          .k = strided(p.k),
          .v = from_column(p.v, first_column),
          .o = from_column(p.o, first_column),
          .lse = strided_rows(p.lse),
          .sink = per_head(p.sink),
          .section_heads = section_heads};
}

constexpr std::int64_t copy_bytes = 16;  // of one asynchronous copy
// Heads whose keys and values stay in the L2 cache together are worked on together.
constexpr std::int64_t section_bytes = 32 << 20;

// Empty, or why rows of the tensor cannot be copied 16 bytes at a time.
std::string refuse_rows(const char* name, const TensorView& x) {
  const auto found = [&](const std::string& what) {
    return std::string(name) + ": " + what + "; this kernel copies 16 bytes at a time";
  };
  if (x.strides[3] != 1 && x.shape[3] > 1) return found("its last dim is not contiguous");
  if (reinterpret_cast<std::uintptr_t>(x.data) % copy_bytes != 0) {
    return found("its address is no multiple of 16");
  }
  for (int i = 0; i < 3; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (x.shape[at] > 1 && x.strides[at] * size_bytes(x.dtype) % copy_bytes != 0) {
      return found("its stride " + std::to_string(x.strides[at]) + " is no multiple of 16 bytes");
    }
  }
  return {};
}

// `count` neighbours of o start at a multiple of their bytes.
bool stores_at_once(const TensorView& o, std::int64_t count) {
  const auto bytes = static_cast<std::uintptr_t>(count * size_bytes(o.dtype));
  bool aligned = o.strides[3] == 1 && reinterpret_cast<std::uintptr_t>(o.data) % bytes == 0;
  for (std::size_t i = 0; i < 3; ++i) {
    aligned = aligned && (o.shape[i] == 1 || o.strides[i] % count == 0);
  }
  return aligned;
}

}  // namespace

std::size_t forward_call_size(const Problem& p) {
  return sizeof(Forward) + lang::cuda_text_parameter_bytes(p.mask) +
         lang::cuda_text_parameter_bytes(score_of(p));
}

std::vector<std::byte> forward_call_bytes(const Problem& p, std::int64_t section_heads,
                                          std::int64_t first_column) {
  const Forward forward = forward_of(p, section_heads, first_column);
  std::vector<std::byte> bytes(sizeof forward);
  std::memcpy(bytes.data(), &forward, sizeof forward);
  bytes.reserve(forward_call_size(p));
  append_parameters({&p.mask, &score_of(p)}, bytes);
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
  text += constants_text({{"d", p.d},
                          {"d_v", p.d_v},
                          {"has_mask", p.has_mask},
                          {"has_score", p.has_score},
                          {"has_lse", p.lse.given()},
                          {"has_sink", p.sink.given()},
                          {"has_dropout", p.dropout.p > 0.0}});
  text += constants_text(constants);
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
  if (std::string reason = refuse_call(p, capabilities); !reason.empty()) return reason;
  if (forward_call_size(p) > most_parameter_bytes) {
    return "args: more than a kernel's 4096 bytes of parameters hold; use fewer";
  }
  return {};
}

std::string refuse_inputs(const Problem& p) {
  const std::array<std::pair<const char*, const TensorView*>, 3> inputs = {
      {{"q", &p.q}, {"k", &p.k}, {"v", &p.v}}};
  for (const auto& [name, view] : inputs) {
    std::string reason = refuse_rows(name, *view);
    if (!reason.empty()) return reason;
  }
  return {};
}

bool only_compares(const lang::Program& mask) {
  for (const lang::Node& node : mask.nodes) {
    switch (node.op) {
      case lang::Op::constant:
      case lang::Op::parameter:
      case lang::Op::name:
      case lang::Op::negate:
      case lang::Op::add:
      case lang::Op::subtract:
      case lang::Op::logical_and:
      case lang::Op::less:
      case lang::Op::less_equal:
        break;
      default:
        return false;
    }
  }
  return true;
}

bool stores_pairs(const TensorView& o) { return stores_at_once(o, 2); }

bool stores_blocks(const TensorView& o) {
  return size_bytes(o.dtype) == 2 && o.shape[3] % 8 == 0 && stores_at_once(o, 8);
}

std::int64_t section_heads(const Problem& p) {
  const std::int64_t bytes = p.s_kv * (p.d + p.d_v) * size_bytes(p.dtype);
  return p.group * std::max<std::int64_t>(1, section_bytes / std::max<std::int64_t>(1, bytes));
}

}  // namespace onepass::cuda
