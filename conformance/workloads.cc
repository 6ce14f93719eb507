// Shapes of public models. Lengths are divided by Settings::shrink; 1 runs them at full size.
#include <algorithm>
#include <cmath>
#include <utility>

#include "conformance/checker.h"
#include "conformance/every_case.h"

namespace onepass::conformance {
namespace {

std::int64_t shrunk(const Settings& settings, std::int64_t length) {
  return std::max<std::int64_t>(length / settings.shrink, 1);
}

// The call in float32 and bfloat16, both of which hold G's values exactly, so that large inputs are
// not copied to be rounded. Long calls are compared on rows of the first, middle and last tile, and
// everywhere for finite values.
void check_workload(Checker& checker, Call& call) {
  const std::int64_t s_q = call.shape().s_q;
  call.sample_rows.clear();
  if (s_q > 128) {
    call.sample_rows = {0, 1, 63, s_q / 2 - 1, s_q / 2, s_q / 2 + 1, s_q - 64, s_q - 2, s_q - 1};
  }
  for (const DType dtype : {DType::bfloat16, DType::float32}) {
    call.dtype = call.out_dtype = dtype;
    const Answer answer = checker.check(call);
    for (const double value : answer.o) {
      if (!std::isfinite(value)) return checker.fail(call, "o is not finite everywhere");
    }
  }
}

// The gradients as well: a training step.
void check_training(Checker& checker, Call call) {
  call.sample_rows.clear();
  for (const DType dtype : {DType::bfloat16, DType::float32}) {
    call.dtype = call.out_dtype = dtype;
    BackwardCall backward = backward_of(call);
    for (const NamedArgument& argument : call.arguments) {
      const auto* array = std::get_if<NamedArray>(&argument.value);
      if (array != nullptr && is_float(array->dtype)) backward.dargs.push_back(argument.name);
    }
    const Gradients gradients = checker.check(backward);
    for (const auto& gradient : {gradients.dq, gradients.dk, gradients.dv}) {
      for (const double value : gradient) {
        if (!std::isfinite(value)) return checker.fail(backward, "a gradient is not finite");
      }
    }
  }
}

// One step of decoding: the new token's key and value go into pages of 16, in no order, which give
// the bits of one long cache. `lengths` counts the new token.
void check_step(Checker& checker, const Call& call, const std::vector<std::int64_t>& lengths) {
  const Shape s = call.shape();
  const Call token = generated({.b = s.b, .h_kv = s.h_kv, .d = s.d, .d_v = s.d_v});
  CacheCall step;
  step.call = call;
  for (const std::int64_t length : lengths) step.lengths.push_back(length - 1);
  step.k_new = token.k, step.v_new = token.v;
  for (const DType dtype : {DType::bfloat16, DType::float32}) {
    step.call.dtype = step.call.out_dtype = dtype;
    step.page_size = 16;
    const CacheAnswer paged = checker.check(step);
    for (const double value : paged.answer.o) {
      if (!std::isfinite(value)) return checker.fail(step, "o is not finite everywhere");
    }
    step.page_size = 0;
    checker.same(step, checker.run(step).answer, paged.answer);
  }
}

std::vector<double> as_doubles(const std::vector<std::int64_t>& values) {
  return {values.begin(), values.end()};
}

}  // namespace

Outcome w01_llama3(const Settings& settings) {
  Checker checker(settings);
  const std::int64_t s = shrunk(settings, 8192);
  Call prefill = generated({.h_q = 32, .h_kv = 8, .s_q = s, .s_kv = s, .d = 128, .d_v = 128});
  prefill.mask = "causal";
  check_workload(checker, prefill);
  // The reference holds float64 copies: 64 caches of 8192 keys would take more memory than most
  // machines have, so the larger batch has the shorter caches.
  for (const auto& [b, capacity] : {std::pair<std::int64_t, std::int64_t>{1, s},
                                    {8, s},
                                    {64, std::max<std::int64_t>(s / 8, 1)}}) {
    Call decode =
        generated({.b = b, .h_q = 32, .h_kv = 8, .s_q = 1, .s_kv = capacity, .d = 128, .d_v = 128});
    std::vector<std::int64_t> lengths;
    for (std::int64_t i = 0; i < b; ++i) {
      lengths.push_back(capacity - i * (capacity - 1) / std::max<std::int64_t>(b - 1, 1));
    }
    decode.mask = "causal";
    check_step(checker, decode, lengths);
    for (const std::int64_t length : lengths) decode.q_start.push_back(length - 1);
    decode.mask = "lengths(n) & causal";
    decode.arguments = {{"n", NamedArray{DType::int32, {b}, as_doubles(lengths)}}};
    check_workload(checker, decode);
  }
  return checker.outcome();
}

Outcome w02_gemma2(const Settings& settings) {
  Checker checker(settings);
  const std::int64_t s = shrunk(settings, 8192);
  Call call = generated({.h_q = 16, .h_kv = 8, .s_q = s, .s_kv = s, .d = 256, .d_v = 256});
  call.score = "softcap(s, 50)";
  call.scale = 1.0 / 16.0;
  call.mask = "causal";
  check_workload(checker, call);
  call.mask = "window(left, 0)";
  call.arguments = {{"left", shrunk(settings, 4096) - 1}};
  check_workload(checker, call);
  return checker.outcome();
}

Outcome w03_bert(const Settings& settings) {
  Checker checker(settings);
  const std::int64_t s = shrunk(settings, 512);
  std::vector<std::int64_t> lengths;
  for (const std::int64_t length : {512, 384, 97, 33, 12, 1}) {
    lengths.push_back(shrunk(settings, length));
  }
  Call call = generated({.b = 6, .h_q = 12, .h_kv = 12, .s_q = s, .s_kv = s, .d = 64, .d_v = 64});
  call.mask = "lengths(n)";
  call.arguments = {{"n", NamedArray{DType::int64, {6}, as_doubles(lengths)}}};
  check_workload(checker, call);
  call.dropout = {0.1, 1234, 0};
  check_training(checker, call);
  // The same batch without its padding.
  std::vector<std::int64_t> cu = {0};
  for (const std::int64_t length : lengths) cu.push_back(cu.back() + length);
  Call packed =
      generated({.h_q = 12, .h_kv = 12, .s_q = cu.back(), .s_kv = cu.back(), .d = 64, .d_v = 64});
  packed.cu_seqlens_q = packed.cu_seqlens_k = cu;
  packed.dropout = call.dropout;
  check_training(checker, packed);
  return checker.outcome();
}

Outcome w04_vit(const Settings& settings) {
  Checker checker(settings);
  for (const std::int64_t h : {12, 16}) {
    Call call = generated({.b = shrunk(settings, 64),
                           .h_q = h,
                           .h_kv = h,
                           .s_q = 197,
                           .s_kv = 197,
                           .d = 64,
                           .d_v = 64});
    check_workload(checker, call);
    if (h != 12) continue;
    check_training(
        checker,
        generated({.b = 1, .h_q = h, .h_kv = h, .s_q = 197, .s_kv = 197, .d = 64, .d_v = 64}));
  }
  return checker.outcome();
}

Outcome w05_stable_diffusion(const Settings& settings) {
  Checker checker(settings);
  struct Layer {
    std::int64_t s_q, s_kv, d;
  };
  for (const Layer& layer :
       {Layer{4096, 77, 40}, {1024, 77, 80}, {256, 77, 160}, {64, 77, 160}, {4096, 0, 40}}) {
    const std::int64_t s_q = shrunk(settings, layer.s_q);
    Call call = generated({.b = 2,
                           .h_q = 8,
                           .h_kv = 8,
                           .s_q = s_q,
                           .s_kv = layer.s_kv == 0 ? s_q : layer.s_kv,
                           .d = layer.d,
                           .d_v = layer.d});
    check_workload(checker, call);
  }
  return checker.outcome();
}

Outcome w06_swin(const Settings& settings) {
  Checker checker(settings);
  // An 8 x 8 grid of 7 x 7 windows, shifted by 3: tokens of the last row or column of windows see
  // only those that came from the same side of the image.
  constexpr std::int64_t grid = 8, side = 7, tokens = side * side;
  for (const std::int64_t h : {4, 8, 16, 32}) {
    const std::int64_t windows = shrunk(settings, grid * grid);
    std::vector<double> region, same;
    for (std::int64_t i = 0; i < windows; ++i) {
      const std::int64_t window = grid * grid - 1 - i;  // the last windows are the mixed ones
      for (std::int64_t token = 0; token < tokens; ++token) {
        const bool low = window / grid == grid - 1 && token / side >= side - 3;
        const bool right = window % grid == grid - 1 && token % side >= side - 3;
        region.push_back(2 * low + right);
      }
      for (std::int64_t q = 0; q < tokens; ++q) {
        for (std::int64_t k = 0; k < tokens; ++k) {
          const auto at = static_cast<std::size_t>(i * tokens);
          same.push_back(region[at + static_cast<std::size_t>(q)] ==
                         region[at + static_cast<std::size_t>(k)]);
        }
      }
    }
    Call call = generated(
        {.b = windows, .h_q = h, .h_kv = h, .s_q = tokens, .s_kv = tokens, .d = 32, .d_v = 32});
    call.score = "bias(s, relative)";
    std::vector<double> bias;
    for (std::int64_t i = 0; i < h * tokens * tokens; ++i) {
      bias.push_back(static_cast<double>(i * 37 % 101 - 50) / 32.0);
    }
    const NamedArgument relative{"relative",
                                 NamedArray{DType::float32, {1, h, tokens, tokens}, bias}};
    call.arguments = {relative};
    check_workload(checker, call);
    call.mask = "dense(m)";
    call.arguments = {relative,
                      {"m", NamedArray{DType::boolean, {windows, 1, tokens, tokens}, same}}};
    check_workload(checker, call);
    const Answer dense = checker.run(call);
    call.mask = "document(ids)";
    call.arguments = {relative, {"ids", NamedArray{DType::int32, {windows, tokens}, region}}};
    checker.same(call, checker.run(call), dense);
    check_training(checker, call);
  }
  return checker.outcome();
}

Outcome w08_gpt2_xl(const Settings& settings) {
  Checker checker(settings);
  const std::int64_t s = shrunk(settings, 1024);
  Call call = generated({.h_q = 25, .h_kv = 25, .s_q = s, .s_kv = s, .d = 64, .d_v = 64});
  check_workload(checker, call);
  call.mask = "causal";
  check_workload(checker, call);
  return checker.outcome();
}

}  // namespace onepass::conformance
