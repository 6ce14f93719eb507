// Where heads and elements are: grouped heads, strides, shared buffers.
#include <cmath>

#include "conformance/checker.h"
#include "conformance/every_case.h"

namespace onepass::conformance {

Outcome d10_grouped_heads_few_queries(const Settings& settings) {
  Checker checker(settings);
  for (const DType dtype : float_dtypes) {
    for (const std::int64_t h_kv : {2, 8, 1, 4}) {
      for (const std::int64_t s_q : {1, 2, 3, 4, 5, 70}) {
        Call call = generated(
            {.b = 3, .h_q = 8, .h_kv = h_kv, .s_q = s_q, .s_kv = 100, .d = 128, .d_v = 128});
        for (std::size_t i = 0; i < call.v.data.size(); ++i) {
          const auto head = static_cast<std::int64_t>(i) / 128 % h_kv;
          const auto b = static_cast<std::int64_t>(i) / (128 * h_kv * 100);
          call.v.data[i] = static_cast<double>(10 * b + head);
        }
        call = call.in(dtype);
        const Answer answer = checker.run(call);
        std::vector<double> want(answer.o.size());
        for (std::size_t i = 0; i < want.size(); ++i) {
          const auto h = static_cast<std::int64_t>(i) / 128 % 8;
          const auto b = static_cast<std::int64_t>(i) / (128 * 8 * s_q);
          want[i] = static_cast<double>(10 * b + h / (8 / h_kv));
        }
        if (!answer.ran) continue;
        // Weights of one value: the mean is that value, up to the rounding of their sum.
        checker.close(call, "o", answer.o, want, closed_form_tolerance(dtype) / 2);
        if (s_q > 5) continue;
        BackwardCall ones = backward_of(call);
        ones.dout = filled(ones.dout.shape, 1.0);
        ones.gradient_dtype = dtype == DType::float64 ? dtype : DType::float32;
        std::vector<double> sums(static_cast<std::size_t>(3 * h_kv * 128), 0.0);
        const Gradients gradients = checker.run(ones);
        for (std::size_t i = 0; i < gradients.dv.size(); ++i) {
          const auto line = static_cast<std::size_t>(h_kv * 128);
          sums[i / (line * 100) * line + i % line] += gradients.dv[i];
        }
        const double rows = static_cast<double>(s_q * (8 / h_kv));
        checker.close(ones, "sum of dv over keys", sums, std::vector<double>(sums.size(), rows),
                      closed_form_tolerance(dtype));
      }
      Call few =
          generated({.b = 2, .h_q = 8, .h_kv = h_kv, .s_q = 3, .s_kv = 33, .d = 16, .d_v = 8});
      checker.check(backward_of(few.in(dtype)));
    }
  }
  return checker.outcome();
}

Outcome d11_strides(const Settings& settings) {
  Checker checker(settings);
  constexpr Layout layouts[] = {Layout::head_major, Layout::every_second_row, Layout::part_of_wider,
                                Layout::strided_dim, Layout::reversed};
  for (const DType dtype : float_dtypes) {
    for (const std::int64_t d : {32, 7}) {
      Call call = generated({.b = 2, .h_q = 4, .h_kv = 2, .s_q = 17, .s_kv = 45, .d = d, .d_v = 32})
                      .in(dtype);
      const Answer contiguous = checker.check(call);
      const auto like_contiguous = [&](const Call& variant) {
        checker.same(variant, checker.run(variant), contiguous);
      };
      for (const Layout layout : layouts) {
        for (Layout Call::*tensor :
             {&Call::q_layout, &Call::k_layout, &Call::v_layout, &Call::o_layout}) {
          Call variant = call;
          variant.*tensor = layout;
          like_contiguous(variant);
        }
        Call variant = call;
        variant.q_layout = variant.k_layout = variant.v_layout = variant.o_layout = layout;
        like_contiguous(variant);
      }
      // One key/value head seen as two.
      Call expanded = call;
      for (reference::Tensor* tensor : {&expanded.k, &expanded.v}) {
        const std::int64_t channels = tensor->shape[3];
        for (std::size_t i = 0; i < tensor->data.size(); ++i) {
          const auto place = static_cast<std::int64_t>(i);
          if (place / channels % 2 == 1) {
            tensor->data[i] = tensor->data[static_cast<std::size_t>(place - channels)];
          }
        }
      }
      const Answer copied = checker.run(expanded);
      expanded.k_layout = expanded.v_layout = Layout::one_head;
      checker.same(expanded, checker.run(expanded), copied);
    }
  }
  return checker.outcome();
}

}  // namespace onepass::conformance
