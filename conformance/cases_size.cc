// Sizes: head dims and lengths that fit no tile, and sizes of zero.
#include <cmath>
#include <limits>

#include "conformance/checker.h"
#include "conformance/every_case.h"
#include "conformance/generator.h"

namespace onepass::conformance {
namespace {

// The same channels followed by zeros.
reference::Tensor padded(const reference::Tensor& tensor, std::int64_t channels) {
  reference::Tensor wider =
      filled({tensor.shape[0], tensor.shape[1], tensor.shape[2], channels}, 0.0);
  for (std::size_t i = 0; i < tensor.data.size(); ++i) {
    const auto place = static_cast<std::int64_t>(i);
    const std::int64_t row = place / tensor.shape[3], channel = place % tensor.shape[3];
    wider.data[static_cast<std::size_t>(row * channels + channel)] = tensor.data[i];
  }
  return wider;
}

void check_padding(Checker& checker, const Call& call) {
  const Answer answer = checker.check(call);
  const Shape s = call.shape();
  Call wider = call;
  const std::int64_t d = (s.d + 63) / 64 * 64, d_v = (s.d_v + 63) / 64 * 64;
  wider.q = padded(call.q, d), wider.k = padded(call.k, d), wider.v = padded(call.v, d_v);
  wider.scale = 1.0 / std::sqrt(static_cast<double>(s.d));
  const Answer from_wider = checker.run(wider);
  if (!answer.ran || !from_wider.ran) return;
  std::vector<double> cut;
  for (std::size_t i = 0; i < from_wider.o.size(); ++i) {
    if (static_cast<std::int64_t>(i) % d_v < s.d_v) cut.push_back(from_wider.o[i]);
  }
  checker.close(call, "o beside zero-padded channels", answer.o, cut,
                closed_form_tolerance(call.dtype));
  checker.close(call, "lse beside zero-padded channels", answer.lse, from_wider.lse, 1e-5);
}

}  // namespace

Outcome d13_any_head_dim(const Settings& settings) {
  Checker checker(settings);
  Call call = generated({.h_q = 2, .h_kv = 2, .s_q = 96, .s_kv = 96, .d = 63, .d_v = 63});
  const Gradients gradients = checker.check(backward_of(call));
  const Answer& full = gradients.forward;
  if (gradients.ran) {
    checker.probe(call, "sum |dq|", sum_abs(gradients.dq), 336.351273);
    checker.probe(call, "sum |dk|", sum_abs(gradients.dk), 1339.69283);
    checker.probe(call, "sum |dv|", sum_abs(gradients.dv), 1129.58495);
    checker.probe(call, "o[0, 0, 0]", full.o.front(), -0.0179212541);
    checker.probe(call, "o[end]", full.o.back(), -0.0826849926);
    checker.probe(call, "lse[0, 0]", full.lse[0], 5.40088969);
    checker.probe(call, "sum |o|", sum_abs(full.o), 1215.82385);
  }
  call.mask = "causal";
  const Gradients causal = checker.check(backward_of(call));
  if (causal.ran) {
    checker.probe(call, "sum |o|", sum_abs(causal.forward.o), 1925.54796);
    checker.probe(call, "sum |dq|", sum_abs(causal.dq), 433.687497);
    checker.probe(call, "sum |dk|", sum_abs(causal.dk), 1491.47551);
    checker.probe(call, "sum |dv|", sum_abs(causal.dv), 1458.97453);
  }

  for (const std::int64_t d : {1,  2,  3,  5,  7,   8,   9,   15,  16,  17,  31,  33,  40, 47,
                               65, 72, 80, 96, 100, 127, 128, 160, 192, 200, 256, 320, 576}) {
    for (const DType dtype : float_dtypes) {
      check_padding(
          checker,
          generated({.h_q = 2, .h_kv = 1, .s_q = 9, .s_kv = 70, .d = d, .d_v = d}).in(dtype));
    }
    // d and d_v unequal, both ways.
    Call unequal = generated({.s_q = 7, .s_kv = 67, .d = d, .d_v = 577 - d});
    unequal.mask = "causal";
    checker.check(backward_of(unequal));
    checker.check(backward_of(unequal.in(DType::bfloat16)));
  }
  return checker.outcome();
}

Outcome d14_any_length(const Settings& settings) {
  Checker checker(settings);
  std::vector<std::int64_t> lengths;
  for (std::int64_t s = 1; s <= 300; ++s) lengths.push_back(s);
  for (const std::int64_t s : {511, 512, 513, 1023, 1024, 1025}) lengths.push_back(s);
  for (const std::int64_t s : lengths) {
    for (const DType dtype : float_dtypes) {
      for (const bool causal : {false, true}) {
        // Channel 0 counts, channel 1 is 1.
        Call call = counting({.s_q = s, .s_kv = s, .d = 8, .d_v = 2});
        for (std::size_t i = 1; i < call.v.data.size(); i += 2) call.v.data[i] = 1.0;
        call = call.in(dtype);
        if (causal) call.mask = "causal";
        const Answer answer = checker.run(call);
        if (!answer.ran) continue;
        std::vector<double> mean, got_mean, ones, lse;
        for (std::int64_t row = 0; row < s; ++row) {
          const double last = static_cast<double>(causal ? row : s - 1);
          got_mean.push_back(answer.o[static_cast<std::size_t>(2 * row)]);
          ones.push_back(answer.o[static_cast<std::size_t>(2 * row + 1)]);
          mean.push_back(last / 2.0);
          lse.push_back(std::log(last + 1.0));
        }
        checker.same(call, "o of v = 1", ones, std::vector<double>(ones.size(), 1.0));
        checker.close(call, "lse", answer.lse, lse, 1e-5);
        // A ramp beyond 256 is not exact in bfloat16.
        if (dtype != DType::bfloat16) {
          checker.close(call, "o of the ramp", got_mean, mean, closed_form_tolerance(dtype));
        }
      }
    }
  }
  return checker.outcome();
}

Outcome d15_sizes_of_zero(const Settings& settings) {
  Checker checker(settings);
  const Shape base{.b = 2, .h_q = 4, .h_kv = 2, .s_q = 5, .s_kv = 7, .d = 8, .d_v = 6};
  std::vector<Shape> shapes = {
      {.b = 0, .h_q = 10, .h_kv = 10, .s_q = 3952, .s_kv = 16, .d = 64, .d_v = 64}};
  for (std::int64_t Shape::*size : {&Shape::b, &Shape::s_q, &Shape::s_kv, &Shape::d, &Shape::d_v}) {
    Shape shape = base;
    shape.*size = 0;
    shapes.push_back(shape);
    shape.s_kv = 0;
    shapes.push_back(shape);
    shape.s_q = 0;
    shapes.push_back(shape);
  }
  Shape no_heads = base;
  no_heads.h_q = no_heads.h_kv = 0;
  shapes.push_back(no_heads);
  for (const Shape& shape : shapes) {
    for (const DType dtype : float_dtypes) {
      for (const char* mask : {"full", "causal"}) {
        Call call = generated(shape).in(dtype);
        call.mask = mask;
        const Gradients gradients = checker.check(backward_of(call));
        const Answer& answer = gradients.forward;
        call.sink = std::vector<double>(static_cast<std::size_t>(shape.h_q), 0.75);
        checker.check(backward_of(call));
        // Written, although nothing adds to them.
        for (const auto& gradient : {gradients.dq, gradients.dk, gradients.dv}) {
          if (!gradients.ran || (shape.s_q != 0 && shape.s_kv != 0)) continue;
          checker.same(call, "gradient", gradient, std::vector<double>(gradient.size(), 0.0));
        }
        if (!answer.ran || shape.s_kv != 0) continue;
        checker.same(call, "o", answer.o, std::vector<double>(answer.o.size(), 0.0));
        checker.same(
            call, "lse", answer.lse,
            std::vector<double>(answer.lse.size(), -std::numeric_limits<double>::infinity()));
      }
    }
  }
  return checker.outcome();
}

}  // namespace onepass::conformance
