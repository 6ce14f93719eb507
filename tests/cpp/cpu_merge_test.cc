// merge: neutral parts, agreement with one call over all keys, strides and dtypes.
#include <gtest/gtest.h>

#include <cstring>

#include "cpu_case.h"

namespace onepass::cpu_test {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();

struct Part {
  std::vector<float> o, lse;
  TensorView o_view, lse_view;
  Part(std::vector<float> o_values, std::vector<float> lse_values)
      : o(std::move(o_values)), lse(std::move(lse_values)) {
    const auto rows = static_cast<std::int64_t>(lse.size());
    o_view = TensorView(o.data(), {1, rows, 1, static_cast<std::int64_t>(o.size()) / rows});
    lse_view = TensorView(lse.data(), {1, 1, rows});
  }
};

void merge_parts(Part& to, Part& from) {
  merge(to.o_view, to.lse_view, from.o_view, from.lse_view);
}

TEST(CpuMerge, EmptyPartsAreNeutralToTheBit) {
  Part both({0, 0}, {-inf}), empty({0, 0}, {-inf});
  merge_parts(both, empty);
  EXPECT_EQ(both.o, (std::vector<float>{0, 0}));
  EXPECT_EQ(both.lse[0], -inf);
  Part some({0.1F, -3.7F}, {1.5F});
  merge_parts(some, empty);
  EXPECT_EQ(some.o, (std::vector<float>{0.1F, -3.7F}));
  EXPECT_EQ(some.lse[0], 1.5F);
  merge_parts(empty, some);
  EXPECT_EQ(empty.o, some.o);
  EXPECT_EQ(empty.lse[0], 1.5F);
}

TEST(CpuMerge, EqualPartsAverageWhateverTheirSize) {
  for (const float lse : {-32768.0F, 0.0F, 32768.0F, inf}) {
    Part a({1, 5}, {lse}), b({3, 7}, {lse});
    merge_parts(a, b);
    EXPECT_EQ(a.o, (std::vector<float>{2, 6})) << lse;
    EXPECT_FLOAT_EQ(a.lse[0], lse + std::log(2.0F));
  }
}

TEST(CpuMerge, NanStaysNan) {
  Part a({std::nanf(""), 5}, {0.0F}), b({3, 7}, {0.0F});
  merge_parts(a, b);
  EXPECT_TRUE(std::isnan(a.o[0]));
  EXPECT_EQ(a.o[1], 6.0F);
}

// The keys in three parts, the middle one without a visible key for the early rows.
TEST(CpuMerge, PartsGiveTheWhole) {
  for (const DType out : {DType::float32, DType::bfloat16}) {
    Case c{.b = 2,
           .h_q = 4,
           .h_kv = 2,
           .s_q = 70,
           .s_kv = 150,
           .d = 32,
           .d_v = 300,
           .dtype = DType::bfloat16,
           .out_dtype = out};
    c.options.mask = "causal";
    Call whole(c);
    whole.run();
    Call parts(c);
    const std::int64_t cuts[] = {0, 60, 140, 150};
    std::vector<Buffer> o(3, Buffer(out, parts.o_view.elements()));
    std::vector<Buffer> lse(3, Buffer(DType::float32, parts.lse_view.elements()));
    std::vector<TensorView> o_views, lse_views;
    for (int part = 0; part < 3; ++part) {
      TensorView k = parts.k_view, v = parts.v_view;
      for (TensorView* view : {&k, &v}) {
        view->data = static_cast<char*>(view->data) +
                     cuts[part] * view->strides[1] * size_bytes(view->dtype);
        view->shape[1] = cuts[part + 1] - cuts[part];
      }
      // (b, h, s, d) memory for the partial outputs.
      o_views.push_back(
          TensorView(o[part].data(), out, {c.b, c.h_q, c.s_q, c.d_v}).transposed(1, 2));
      lse_views.push_back(TensorView(lse[part].data(), DType::float32, {c.b, c.h_q, c.s_q}));
      Attention options = c.options;
      options.lse = lse_views.back();
      options.q_start = c.s_kv - c.s_q;
      options.k_start = cuts[part];
      attention(parts.q_view, k, v, o_views.back(), options);
    }
    for (const int part : {2, 1}) {
      merge(o_views[0], lse_views[0], o_views[part], lse_views[part], {.threads = part});
    }
    std::vector<double> want, want_lse;
    for (std::int64_t i = 0; i < whole.lse_view.elements(); ++i)
      want_lse.push_back(whole.lse.get(i));
    for (std::int64_t b = 0; b < c.b; ++b) {
      for (std::int64_t h = 0; h < c.h_q; ++h) {
        for (std::int64_t i = 0; i < c.s_q; ++i) {
          for (std::int64_t e = 0; e < c.d_v; ++e) {
            want.push_back(whole.o.get(((b * c.s_q + i) * c.h_q + h) * c.d_v + e));
          }
        }
      }
    }
    // Weights are rounded to bfloat16 against another maximum in each part.
    EXPECT_LE(largest_error(o[0], want), out == DType::float32 ? 5e-3 : 3e-2);
    EXPECT_LE(largest_error(lse[0], want_lse), 3e-4);
  }
}

TEST(CpuMerge, RefusesWhatDoesNotFit) {
  Part a({1, 2}, {0.0F}), b({1, 2, 3, 4}, {0.0F, 0.0F});
  const auto message = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing";
  };
  EXPECT_EQ(message([&] { merge_parts(a, b); }).rfind("o_other: ", 0), 0U);
  TensorView overlapping = a.o_view;
  overlapping.strides[3] = 0;
  EXPECT_EQ(message([&] { merge(overlapping, a.lse_view, a.o_view, a.lse_view); }).rfind("o: ", 0),
            0U);
  EXPECT_EQ(message([&] { merge(a.o_view, {}, a.o_view, a.lse_view); }).rfind("lse: ", 0), 0U);
  EXPECT_EQ(a.o, (std::vector<float>{1, 2}));
}

}  // namespace
}  // namespace onepass::cpu_test
