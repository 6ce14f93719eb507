#include "cuda/forward_call.h"

#include <cstring>

#include "lang/cuda_text.h"

namespace onepass::cuda {
namespace {

// As in kernels/forward_call.cuh.
struct Forward {
  CallShape shape;
  Strided q, k, v, o, lse, sink;
  std::int64_t section_heads;
};

Forward forward_of(const Problem& p, std::int64_t section_heads) {
  return {.shape = shape_of(p),
          .q = strided(p.q),
          .k = strided(p.k),
          .v = strided(p.v),
          .o = strided(p.o),
          .lse = strided_rows(p.lse),
          .sink = per_head(p.sink),
          .section_heads = section_heads};
}

std::size_t call_size(const Problem& p) {
  return sizeof(Forward) + lang::cuda_text_parameter_bytes(p.mask) +
         lang::cuda_text_parameter_bytes(score_of(p));
}

}  // namespace

std::vector<std::byte> forward_call_bytes(const Problem& p, std::int64_t section_heads) {
  const Forward forward = forward_of(p, section_heads);
  std::vector<std::byte> bytes(sizeof forward);
  std::memcpy(bytes.data(), &forward, sizeof forward);
  bytes.reserve(call_size(p));
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
  if (call_size(p) > most_parameter_bytes) {
    return "args: more than a kernel's 4096 bytes of parameters hold; use fewer";
  }
  return {};
}

}  // namespace onepass::cuda
