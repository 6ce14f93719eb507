// The backward pass: layouts of dO, one key, logits far below 0, no mask at all.
#include <cmath>

#include "conformance/checker.h"
#include "conformance/every_case.h"
#include "conformance/generator.h"

namespace onepass::conformance {
namespace {

// Sums over the keys: one number for each sequence, head and channel.
std::vector<double> sum_over_keys(const Call& call, std::span<const double> gradient) {
  const auto [b, s, h, d] = call.v.shape;
  std::vector<double> sums(static_cast<std::size_t>(b * h * d), 0.0);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const auto place = static_cast<std::int64_t>(i);
    const std::int64_t batch = place / (s * h * d), line = place % (h * d);
    sums[static_cast<std::size_t>(batch * h * d + line)] += gradient[i];
  }
  return sums;
}

// Channel `channel` of row `row` of a (1, s, 1, d) tensor.
double& channel_of(reference::Tensor& tensor, std::int64_t row, std::int64_t channel) {
  return tensor.data[static_cast<std::size_t>(row * tensor.shape[3] + channel)];
}
double channel_of(const Call& call, std::span<const double> gradient, std::int64_t row,
                  std::int64_t channel) {
  return gradient[static_cast<std::size_t>(row * call.q.shape[3] + channel)];
}

}  // namespace

Outcome d12_layout_of_dout(const Settings& settings) {
  Checker checker(settings);
  for (const DType dtype : float_dtypes) {
    const BackwardCall contiguous = backward_of(
        generated({.b = 2, .h_q = 2, .h_kv = 2, .s_q = 49, .s_kv = 49, .d = 32, .d_v = 32})
            .in(dtype));
    const Gradients want = checker.check(contiguous);
    for (const Layout layout : {Layout::head_major, Layout::every_second_row, Layout::part_of_wider,
                                Layout::strided_dim, Layout::reversed}) {
      for (Layout BackwardCall::*which : {&BackwardCall::dout_layout, &BackwardCall::dq_layout,
                                          &BackwardCall::dk_layout, &BackwardCall::dv_layout}) {
        BackwardCall variant = contiguous;
        variant.*which = layout;
        checker.same(variant, checker.run(variant), want);
      }
      for (Layout Call::*which :
           {&Call::q_layout, &Call::k_layout, &Call::v_layout, &Call::o_layout}) {
        BackwardCall variant = contiguous;
        variant.call.*which = layout;
        checker.same(variant, checker.run(variant), want);
      }
    }
    BackwardCall ones = contiguous;
    ones.dout = filled(ones.dout.shape, 1.0);
    const Gradients of_ones = checker.check(ones);
    ones.dout_layout = Layout::one_value;
    const Gradients expanded = checker.run(ones);
    checker.same(ones, expanded, of_ones);
    const auto sums = sum_over_keys(ones.call, expanded.dv);
    checker.close(ones, "sum of dv over keys", sums, std::vector<double>(sums.size(), 49.0),
                  closed_form_tolerance(dtype));
  }
  return checker.outcome();
}

Outcome d20_one_key(const Settings& settings) {
  Checker checker(settings);
  // Reduced: the report's 8300 sequences overflowed the products of sizes.
  for (const DType dtype : float_dtypes) {
    const BackwardCall call = backward_of(
        generated({.b = 83, .h_q = 16, .h_kv = 16, .s_q = 1, .s_kv = 1, .d = 128, .d_v = 128})
            .in(dtype));
    const Gradients gradients = checker.run(call);
    if (!gradients.ran) continue;
    const std::vector<double> zeros(gradients.dq.size(), 0.0);
    const double tolerance = closed_form_tolerance(dtype);
    checker.close(call, "o", gradients.forward.o, call.call.v.data, tolerance);
    checker.close(call, "dv", gradients.dv, call.dout.data, tolerance);
    checker.close(call, "dq", gradients.dq, zeros, tolerance);
    checker.close(call, "dk", gradients.dk, zeros, tolerance);
  }
  return checker.outcome();
}

Outcome d24_very_negative_lse(const Settings& settings) {
  Checker checker(settings);
  for (const DType dtype : float_dtypes) {
    for (const bool dense : {false, true}) {
      Call call = generated({.s_q = 64, .s_kv = 64, .d = 64, .d_v = 64});
      call.q = filled(call.q.shape, 0.0), call.k = filled(call.k.shape, 0.0);
      for (std::int64_t row = 0; row < 64; ++row) {
        const double sign = row % 2 == 0 ? 1.0 : -1.0;
        channel_of(call.q, row, 0) = 32.0;
        channel_of(call.k, row, 0) = -64.0, channel_of(call.k, row, 1) = sign;
        for (std::int64_t i = 0; i < 64; ++i) channel_of(call.v, row, i) = sign;
      }
      call.scale = 0.125;
      if (dense) {
        call.mask = "dense(m)";
        call.arguments = {
            {"m", NamedArray{DType::boolean, {1, 1, 64, 64}, std::vector<double>(4096, 1.0)}}};
      }
      BackwardCall backward = backward_of(call.in(dtype));
      backward.dout = filled(backward.dout.shape, 0.0);
      for (std::int64_t row = 0; row < 64; ++row) channel_of(backward.dout, row, 0) = 1.0;
      const Gradients got = checker.check(backward);
      if (!got.ran) continue;
      const double tolerance = closed_form_tolerance(dtype);
      checker.close(backward, "lse", got.forward.lse, std::vector<double>(64, -251.841117), 1e-7);
      for (std::int64_t row = 0; row < 64; ++row) {
        const double sign = row % 2 == 0 ? 1.0 : -1.0;
        checker.close(backward, "dq[., 0]", channel_of(call, got.dq, row, 0), 0.0, tolerance);
        checker.close(backward, "dq[., 1]", channel_of(call, got.dq, row, 1), 0.125, tolerance);
        checker.close(backward, "dk[., 0]", channel_of(call, got.dk, row, 0), 4.0 * sign,
                      tolerance);
        checker.close(backward, "dv[., 0]", channel_of(call, got.dv, row, 0), 1.0, tolerance);
      }
    }
    BackwardCall long_call = backward_of(generated({.s_q = 192, .s_kv = 192, .d = 64, .d_v = 64}));
    for (double& value : long_call.call.q.data) value /= 4.0;  // G(1, 1)
    for (std::int64_t row = 0; row < 192; ++row) {
      channel_of(long_call.call.q, row, 0) = 48.0, channel_of(long_call.call.k, row, 0) = -32.0;
    }
    long_call.call = long_call.call.in(dtype);
    long_call.dout_dtype = long_call.gradient_dtype = dtype;
    const Gradients got = checker.check(long_call);
    if (!got.ran || dtype != DType::float32) continue;
    checker.close(long_call, "lse[0]", got.forward.lse[0], -186.738815, 1e-7);
    checker.probe(long_call, "sum |dq|", sum_abs(got.dq), 140.49474);
    checker.probe(long_call, "sum |dk|", sum_abs(got.dk), 292.314539);
    checker.probe(long_call, "sum |dv|", sum_abs(got.dv), 370.059174);
  }
  return checker.outcome();
}

Outcome d26_without_a_mask(const Settings& settings) {
  Checker checker(settings);
  BackwardCall full =
      backward_of(generated({.h_q = 2, .h_kv = 2, .s_q = 128, .s_kv = 128, .d = 64, .d_v = 64}));
  const Gradients got = checker.check(full);
  if (got.ran) {
    checker.probe(full, "sum |o|", sum_abs(got.forward.o), 1415.6109);
    checker.probe(full, "o[0, 0, 0]", got.forward.o[0], -0.151986823);
    checker.probe(full, "lse[0, 0]", got.forward.lse[0], 5.89303695);
    checker.probe(full, "sum |dq|", sum_abs(got.dq), 439.094729);
    checker.probe(full, "sum |dk|", sum_abs(got.dk), 1779.06122);
    checker.probe(full, "sum |dv|", sum_abs(got.dv), 1360.26421);
    checker.close(full, "dq[0]", got.dq[0], -0.024524934, 1e-5);
    checker.close(full, "dk[0]", got.dk[0], 0.433428554, 1e-5);
    checker.close(full, "dv[0]", got.dv[0], 0.0291208802, 1e-5);
  }
  BackwardCall causal = full;
  causal.call.mask = "causal";
  const Gradients below = checker.check(causal);
  if (below.ran) {
    checker.probe(causal, "sum |o|", sum_abs(below.forward.o), 2269.85608);
    checker.probe(causal, "sum |dq|", sum_abs(below.dq), 562.411651);
    checker.probe(causal, "sum |dk|", sum_abs(below.dk), 1959.89207);
    checker.probe(causal, "sum |dv|", sum_abs(below.dv), 1754.18008);
  }
  for (const DType dtype : float_dtypes) {
    for (const auto& [s_q, s_kv] : {std::pair{1, 128}, {128, 1}, {200, 70}, {70, 200}}) {
      BackwardCall call = backward_of(
          generated({.h_q = 2, .h_kv = 2, .s_q = s_q, .s_kv = s_kv, .d = 64, .d_v = 64}).in(dtype));
      checker.check(call);
      if (s_kv != 1) continue;
      call.dout = filled(call.dout.shape, 1.0);
      const Gradients one_key = checker.run(call);
      const std::vector<double> zeros(one_key.dq.size(), 0.0);
      checker.close(call, "dq", one_key.dq, zeros, closed_form_tolerance(dtype));
      checker.close(call, "dk", one_key.dk, std::vector<double>(one_key.dk.size(), 0.0),
                    128 * closed_form_tolerance(dtype));
      checker.close(call, "dv", one_key.dv, std::vector<double>(one_key.dv.size(), 128.0),
                    closed_form_tolerance(dtype));
    }
  }
  return checker.outcome();
}

}  // namespace onepass::conformance
