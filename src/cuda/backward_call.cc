#include "cuda/backward_call.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/rounding.h"
#include "lang/compile.h"
#include "lang/cuda_text.h"

namespace onepass::cuda {
namespace {

constexpr std::int64_t stat_tile = 128;  // no tile of rows is larger
constexpr std::int64_t alignment = 256;
constexpr std::int64_t most_blocks = 1 << 30;

// As in kernels/backward_call.cuh.
struct Call {
  CallShape shape;
  Strided q, k, v, o, dout;
  Strided lse, dlse, sink;
  Strided dq, dk, dv, dsink;
  void *row_lse, *row_delta;
  std::int64_t stat_rows;
  void *again, *again_keys, *again_rows;
  std::int64_t again_ints;
  std::int64_t section_heads;
};

std::int64_t flags_of(std::int64_t heads, std::int64_t s, std::int64_t tile) {
  return tile == 0 ? 0 : round_up(heads * divide_up(s, tile), alignment);
}

Call call_of(const Problem& p, void* workspace, const Again& again) {
  const BackwardWorkspace places = backward_workspace(p);
  auto* const bytes = static_cast<std::byte*>(workspace);
  std::byte* const flags = again.flags;
  std::byte* const of_keys = flags == nullptr ? nullptr : flags + alignment;
  std::byte* const of_rows =
      flags == nullptr ? nullptr : of_keys + flags_of(p.b * p.h_kv, p.s_kv, again.tile_keys);
  return {.shape = shape_of(p),
          .q = strided(p.q),
          .k = strided(p.k),
          .v = strided(p.v),
          .o = strided(p.o),
          .dout = strided(p.dout),
          .lse = strided_rows(p.lse),
          .dlse = strided_rows(p.dlse),
          .sink = per_head(p.sink),
          .dq = strided(p.dq),
          .dk = strided(p.dk),
          .dv = strided(p.dv),
          .dsink = per_head(p.dsink),
          .row_lse = bytes + places.lse,
          .row_delta = bytes + places.delta,
          .stat_rows = places.stat_rows,
          .again = flags,
          .again_keys = of_keys,
          .again_rows = of_rows,
          .again_ints = flags == nullptr ? 0 : again_bytes(p, again) / 4,
          .section_heads = again.section_heads};
}

// The call's, or 1 where it has no score.
const lang::Program& slope_of(const Problem& p) {
  static const lang::Program one = lang::compile("1.0", lang::Kind::score, {}, "").value();
  return p.has_score ? p.slope : one;
}

// float where the tensor is not given.
DType element_of(const TensorView& view) { return view.given() ? view.dtype : DType::float32; }

std::array<std::pair<const char*, DType>, 6> types_of(const Problem& p) {
  return {{{"Element", p.dtype},
           {"Output", p.out_dtype},
           {"DOutput", element_of(p.dout)},
           {"DQuery", element_of(p.dq)},
           {"DKey", element_of(p.dk)},
           {"DValue", element_of(p.dv)}}};
}

Constants constants_of(const Problem& p) {
  return {{"d", p.d},
          {"d_v", p.d_v},
          {"has_mask", p.has_mask},
          {"has_score", p.has_score},
          {"has_dropout", p.dropout.p > 0.0}};
}

}  // namespace

BackwardWorkspace backward_workspace(const Problem& p) {
  BackwardWorkspace places;
  places.stat_rows = round_up(p.s_q, stat_tile);
  const std::int64_t rows = p.b * p.h_q * places.stat_rows;
  const std::int64_t bytes = round_up(rows * static_cast<std::int64_t>(sizeof(float)), alignment);
  places.delta = bytes;
  places.bytes = 2 * bytes;
  return places;
}

std::int64_t again_bytes(const Problem& p, const Again& again) {
  return alignment + flags_of(p.b * p.h_kv, p.s_kv, again.tile_keys) +
         flags_of(p.b * p.h_q, p.s_q, again.tile_rows);
}

std::vector<std::byte> backward_call_bytes(const Problem& p, void* workspace, const Again& again) {
  const Call call = call_of(p, workspace, again);
  std::vector<std::byte> bytes(sizeof call);
  std::memcpy(bytes.data(), &call, sizeof call);
  append_parameters({&p.mask, &score_of(p), &slope_of(p)}, bytes);
  return bytes;
}

std::string backward_preamble(const Problem& p, const Constants& constants, bool int32) {
  const bool fast = p.dtype != DType::float32;
  std::string text = lang::cuda_text_prelude() + "namespace config {\n";
  for (const auto& [type, dtype] : types_of(p)) {
    text += std::string("using ") + type + " = " + element_name(dtype) + ";\n";
  }
  text += constants_text(constants_of(p)) + constants_text(constants);
  return text + "}  // namespace config\n" +
         lang::cuda_text(p.mask, {.name = "mask_text", .int32 = int32}) +
         lang::cuda_text(score_of(p), {.name = "score_text", .int32 = int32, .fast = fast}) +
         lang::cuda_text(slope_of(p), {.name = "slope_text", .int32 = int32, .fast = fast});
}

std::string backward_configuration(const Problem& p, const Constants& constants, bool int32) {
  std::string key;
  key.reserve(512);
  key += int32 ? 'i' : 'l';
  for (const auto& [type, dtype] : types_of(p)) key += static_cast<char>('a' + int(dtype));
  for (const Constants& some : {constants_of(p), constants}) {
    for (const auto& [name, value] : some) key += std::to_string(value) += ' ';
  }
  for (const lang::Program* program : {&p.mask, &score_of(p), &slope_of(p)}) {
    lang::add_cuda_text_key(*program, key);
  }
  return key;
}

std::string refuse_backward(const Problem& p, const Capabilities& capabilities) {
  if (std::string reason = refuse_call(p, capabilities); !reason.empty()) return reason;
  if (p.terms.size() > most_backward_terms) {
    return "dargs: the score reads their arrays at " + std::to_string(p.terms.size()) +
           " places; this kernel takes up to " + std::to_string(most_backward_terms);
  }
  std::size_t most = 0;
  for (const ArrayTerm& term : p.terms) {
    most = std::max(most, lang::cuda_text_parameter_bytes(term.factor) +
                              lang::cuda_text_parameter_bytes(term.place));
  }
  for (const lang::Program* program : {&p.mask, &score_of(p), &slope_of(p)}) {
    most += lang::cuda_text_parameter_bytes(*program);
  }
  constexpr std::size_t room = 64;  // what a term's kernel takes besides
  if (sizeof(Call) + most + room > most_parameter_bytes) {
    return "args: more than a kernel's 4096 bytes of parameters hold; use fewer";
  }
  return {};
}

Status BackwardLaunches::start(std::int64_t blocks, const void* call, std::int64_t threads,
                               std::int64_t shared_bytes) {
  const Kernel& kernel = **next_++;
  if (blocks == 0) return {};
  const Grid grid{.blocks = static_cast<std::uint32_t>(std::min(blocks, most_blocks)),
                  .threads = static_cast<std::uint32_t>(threads),
                  .shared_bytes = static_cast<std::uint32_t>(shared_bytes)};
  return launch_kernel(kernel, device_, grid, stream_, call);
}

}  // namespace onepass::cuda
