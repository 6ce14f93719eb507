#include "conformance/random_call.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "conformance/draw.h"

namespace onepass::conformance {
namespace {

Layout draw_layout(Draw& draw) {
  return draw.pick({Layout::seq_major, Layout::seq_major, Layout::head_major,
                    Layout::every_second_row, Layout::part_of_wider, Layout::strided_dim,
                    Layout::reversed});
}

Shape draw_shape(Draw& draw) {
  Shape s;
  s.b = draw.in(1, 3), s.h_kv = draw.in(1, 3), s.h_q = s.h_kv * draw.pick({1, 1, 2, 4});
  const auto length = [&] {
    return draw.percent(50) ? draw.in(1, 200) : draw.pick({1, 2, 3, 63, 64, 65, 127, 128, 129});
  };
  s.s_q = length(), s.s_kv = length();
  s.d = draw.percent(50) ? draw.in(1, 48) : draw.pick({8, 16, 32, 64, 80, 128});
  s.d_v = draw.percent(70) ? s.d : draw.in(1, 70);
  // The reference is slow: most problems are small, a few are not.
  const std::int64_t most = draw.percent(4) ? 5'000'000 : 500'000, group = s.h_q / s.h_kv;
  const auto work = [&] { return s.b * s.h_q * s.s_q * s.s_kv * (s.d + s.d_v); };
  for (; work() > most && s.b > 1; --s.b) {
  }
  for (; work() > most && s.h_kv > 1; --s.h_kv) s.h_q -= group;
  while (work() > most) {
    std::int64_t& longer = s.s_q > s.s_kv ? s.s_q : s.s_kv;
    longer = longer / 2 + 1;
  }
  return s;
}

// Where each of `sequences` packed sequences begins, and the end; some are empty.
std::vector<std::int64_t> draw_offsets(Draw& draw, std::int64_t sequences, std::int64_t tokens) {
  std::vector<std::int64_t> offsets = {0, tokens};
  for (std::int64_t i = 1; i < sequences; ++i) offsets.push_back(draw.in(0, tokens));
  std::sort(offsets.begin(), offsets.end());
  return offsets;
}

void draw_lengths(Call& call, Draw& draw, const Shape& s) {
  if (draw.percent(15)) call.cu_seqlens_q = draw_offsets(draw, s.b, s.s_q);
  if (draw.percent(15)) call.cu_seqlens_k = draw_offsets(draw, s.b, s.s_kv);
  if (!draw.percent(15)) return;
  for (std::int64_t b = 0; b < s.b; ++b) {
    const auto i = static_cast<std::size_t>(b);
    const auto& cu = call.cu_seqlens_k;
    call.seqused_k.push_back(draw.in(0, cu.empty() ? s.s_kv : cu[i + 1] - cu[i]));
  }
}

// Whether `word` stands in `text` as a whole word.
bool mentions(const std::string& text, const std::string& word) {
  const auto part = [&](std::size_t at) {
    return at < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_');
  };
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    if ((at == 0 || !part(at - 1)) && !part(at + word.size())) return true;
  }
  return false;
}

// The arguments that the texts mention.
void draw_arguments(Call& call, Draw& draw, const Shape& s) {
  const DType integers = draw.pick({DType::int32, DType::int64});
  const auto add = [&](const char* name, auto value) {
    if (mentions(call.mask + " " + call.score, name)) call.arguments.push_back({name, value});
  };
  std::vector<double> ids = draw.integers(s.b * s.s_kv, -1, 3);
  if (draw.percent(60)) {
    const std::int64_t length = draw.in(15, 30);
    for (std::int64_t i = 0; i < s.b * s.s_kv; ++i) {
      ids[static_cast<std::size_t>(i)] = static_cast<double>(i % s.s_kv / length);
    }
  }
  const std::int64_t tokens = s.b * std::max(s.s_q, s.s_kv);
  add("ids", NamedArray{integers, {s.b, s.s_kv}, ids});
  add("tokens", NamedArray{integers, {tokens}, draw.integers(tokens, 0, 2)});
  add("n", NamedArray{integers, {s.b}, draw.integers(s.b, 0, s.s_kv)});
  add("w", draw.in(1, 80));
  add("u", draw.real(1.5));
  add("x",
      NamedArray{
          draw.pick({DType::float32, DType::float64, DType::bfloat16}), {40}, draw.reals(40, 2.0)});
  add("slopes", NamedArray{DType::float32, {s.h_q}, draw.reals(s.h_q, 0.1)});
  const std::int64_t b = draw.pick({std::int64_t{1}, s.b}), h = draw.pick({std::int64_t{1}, s.h_q});
  const std::int64_t rows = draw.pick({std::int64_t{1}, s.s_q}), elements = b * h * rows * s.s_kv;
  add("bias4", NamedArray{draw.pick({DType::float32, DType::float16}),
                          {b, h, rows, s.s_kv},
                          draw.reals(elements, 1.0)});
  add("m", NamedArray{DType::boolean, {b, h, rows, s.s_kv}, draw.integers(elements, 0, 1)});
}

void draw_positions(Call& call, Draw& draw, std::int64_t sequences) {
  call.top_left = draw.percent(30);
  for (std::vector<std::int64_t>* start : {&call.q_start, &call.k_start}) {
    if (!draw.percent(15)) continue;
    const std::int64_t count = draw.percent(50) ? 1 : sequences;
    for (std::int64_t i = 0; i < count; ++i) start->push_back(draw.in(-100, 1000));
  }
}

reference::Tensor tensor(Draw& draw, std::array<std::int64_t, 4> shape, bool exact) {
  const std::int64_t count = shape[0] * shape[1] * shape[2] * shape[3];
  return {shape, exact ? draw.sixteenths(count, 2) : draw.reals(count, 2.0)};
}

Call draw_forward(Draw& draw, std::uint32_t seed) {
  const Shape s = draw_shape(draw);
  Call call;
  call.mask = draw.mask();
  call.score = draw.score();
  draw_lengths(call, draw, s);
  // Where the score has a kink, its two sides must not be a matter of rounding.
  const bool kink = mentions(call.score, "abs") || mentions(call.score, "min");
  const std::int64_t b_q = call.cu_seqlens_q.empty() ? s.b : 1;
  const std::int64_t b_k = call.cu_seqlens_k.empty() ? s.b : 1;
  call.q = tensor(draw, {b_q, s.s_q, s.h_q, s.d}, kink);
  call.k = tensor(draw, {b_k, s.s_kv, s.h_kv, s.d}, kink);
  call.v = tensor(draw, {b_k, s.s_kv, s.h_kv, s.d_v}, false);
  call = call.in(
      draw.pick({DType::float32, DType::float32, DType::float64, DType::bfloat16, DType::float16}));
  if (size_bytes(call.dtype) == 2 && draw.percent(30)) call.out_dtype = DType::float32;
  for (Layout* layout : {&call.q_layout, &call.k_layout, &call.v_layout, &call.o_layout}) {
    *layout = draw_layout(draw);
  }
  draw_arguments(call, draw, s);
  if (draw.percent(30)) call.scale = kink ? draw.pick({0.25, -0.5, 0.0}) : draw.real(0.5);
  if (draw.percent(20)) call.sink = draw.reals(s.h_q, 4.0);
  draw_positions(call, draw, s.b);
  if (draw.percent(15)) call.dropout = {draw.pick({0.1, 0.5}), seed, 5, 16, 32};
  call.repeat = "onepass check random --seed " + std::to_string(seed) + " --count 1";
  return call;
}

}  // namespace

BackwardCall random_call(std::uint32_t seed) {
  Draw draw(seed);
  BackwardCall call = backward_of(draw_forward(draw, seed));
  const DType dtype = call.call.dtype;
  call.dout_dtype = draw.pick({dtype, call.call.out_dtype});
  call.dout.data = draw.reals(static_cast<std::int64_t>(call.dout.data.size()), 2.0);
  for (double& value : call.dout.data) value = rounded(call.dout_dtype, value);
  if (draw.percent(30)) {
    const auto [b, s_q, h_q, d] = call.call.q.shape;
    call.dlse = draw.reals(b * s_q * h_q, 1.0);
    for (double& value : call.dlse) value = rounded(DType::float32, value);
  }
  if (size_bytes(dtype) == 2 && draw.percent(30)) call.gradient_dtype = DType::float32;
  for (Layout* layout : {&call.dout_layout, &call.dq_layout, &call.dk_layout, &call.dv_layout}) {
    *layout = draw_layout(draw);
  }
  for (const char* name : {"x", "slopes", "bias4"}) {
    if (mentions(call.call.score, name)) call.dargs.push_back(name);
  }
  return call;
}

}  // namespace onepass::conformance
