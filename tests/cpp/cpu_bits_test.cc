// What must not change a bit: thread counts, repeats, strides, other sequences, hidden keys.
#include <gtest/gtest.h>

#include <cstring>

#include "cpu_case.h"

namespace onepass::cpu_test {
namespace {

constexpr DType dtypes[] = {DType::float64, DType::float32, DType::bfloat16, DType::float16};
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

void expect_same(const Call& a, const Call& b, const std::string& what) {
  EXPECT_EQ(a.o.bytes(), b.o.bytes()) << what;
  EXPECT_EQ(a.lse.bytes(), b.lse.bytes()) << what;
}

TEST(CpuBits, ThreadsAndRepeatsGiveTheSame) {
  for (const DType dtype : dtypes) {
    for (const std::string& isa : isas_for(dtype)) {
      const ForcedIsa forced(isa.c_str());
      for (const char* mask : {"full", "window(100, 20)"}) {
        Case c{.b = 2,
               .h_q = 4,
               .h_kv = 2,
               .s_q = 200,
               .s_kv = 700,
               .d = 24,
               .d_v = 40,
               .dtype = dtype,
               .out_dtype = dtype};
        c.options.mask = mask;
        c.options.dropout.p = 0.25;
        Call once(c), again(c);
        once.run(1);
        for (const int threads : {1, 2, 3, 16}) {
          again.run(threads);
          expect_same(once, again, isa + " " + mask + " threads " + std::to_string(threads));
        }
      }
    }
  }
}

// Classification decides what is computed, never what comes out.
TEST(CpuBits, AMaskThatIsNotAnalysedGivesTheSame) {
  for (const std::string& isa : isas_for(DType::float32)) {
    const ForcedIsa forced(isa.c_str());
    Case c{.h_q = 2, .s_q = 300, .s_kv = 900, .d = 16, .d_v = 16};
    c.options.mask = "k <= q & (k > q - 70 | k < 5)";
    Call plain(c);
    plain.run();
    // floor of a float product: nothing is known of it.
    c.options.mask = "k <= q & (k > q - 70 | k < 5) & floor(0.37 * q * k) >= 0.0";
    Call opaque(c);
    opaque.run();
    expect_same(plain, opaque, isa);
  }
}

TEST(CpuBits, ASequenceAloneIsTheSameAsInABatch) {
  for (const DType dtype : dtypes) {
    for (const std::string& isa : isas_for(dtype)) {
      const ForcedIsa forced(isa.c_str());
      Case c{.b = 3,
             .h_q = 4,
             .h_kv = 2,
             .s_q = 70,
             .s_kv = 530,
             .d = 32,
             .d_v = 32,
             .dtype = dtype,
             .out_dtype = dtype};
      c.options.mask = "causal";
      Call all(c);
      all.run(2);
      // Queries 10.. of sequence 1 alone, as its own call.
      Case one = c;
      one.b = 1;
      one.s_q = 60;
      Call part(one);
      const auto slice = [](const TensorView& view, std::int64_t b, std::int64_t s) {
        TensorView cut = view;
        cut.shape[0] = 1;
        cut.shape[1] -= s;
        cut.data = static_cast<char*>(view.data) +
                   (b * view.strides[0] + s * view.strides[1]) * size_bytes(view.dtype);
        return cut;
      };
      part.q_view = slice(all.q_view, 1, 10);
      part.k_view = slice(all.k_view, 1, 0);
      part.v_view = slice(all.v_view, 1, 0);
      part.run();
      const auto row_bytes = static_cast<std::size_t>(4 * 32 * size_bytes(dtype));
      EXPECT_EQ(std::memcmp(part.o.bytes().data(), all.o.bytes().data() + (70 + 10) * row_bytes,
                            60 * row_bytes),
                0)
          << isa << " " << name(dtype);
    }
  }
}

// A view over a larger buffer whose other elements are NaN.
TensorView scattered(const TensorView& from, std::vector<unsigned char>& memory,
                     std::array<std::int64_t, 4> strides) {
  const std::int64_t bytes = size_bytes(from.dtype);
  std::int64_t low = 0, high = 0;
  for (int dim = 0; dim < 4; ++dim) {
    const std::int64_t reach = (from.shape[dim] - 1) * strides[dim];
    (reach < 0 ? low : high) += reach;
  }
  memory.assign(static_cast<std::size_t>((high - low + 1) * bytes), 0xFF);  // NaN in every dtype
  TensorView to = from;
  to.strides = strides;
  to.data = memory.data() - low * bytes;
  for (std::int64_t i = 0; i < from.elements(); ++i) {
    std::int64_t rest = i, source = 0, target = 0;
    for (int dim = 3; dim >= 0; --dim) {
      const std::int64_t index = rest % from.shape[dim];
      rest /= from.shape[dim];
      source += index * from.strides[dim];
      target += index * strides[dim];
    }
    std::memcpy(static_cast<char*>(to.data) + target * bytes,
                static_cast<const char*>(from.data) + source * bytes,
                static_cast<std::size_t>(bytes));
  }
  return to;
}

TEST(CpuBits, StridesGiveTheSame) {
  for (const DType dtype : dtypes) {
    for (const std::string& isa : isas_for(dtype)) {
      const ForcedIsa forced(isa.c_str());
      const Case c{.b = 2,
                   .h_q = 4,
                   .h_kv = 2,
                   .s_q = 17,
                   .s_kv = 145,
                   .d = 32,
                   .d_v = 32,
                   .dtype = dtype,
                   .out_dtype = dtype};
      Call plain(c), strided(c);
      plain.run();
      struct Layout {
        const char* name;
        std::array<std::int64_t, 4> q, kv;
      };
      const Layout layouts[] = {
          {"every second row", {17 * 256, 256, 32, 1}, {145 * 128, 128, 32, 1}},
          {"head-major", {4 * 17 * 32, 32, 17 * 32, 1}, {2 * 145 * 32, 32, 145 * 32, 1}},
          {"last stride 2", {17 * 256, 256, 64, 2}, {145 * 128, 128, 64, 2}},
          {"backwards", {17 * 128, -128, 32, 1}, {145 * 64, 64, -32, -1}},
      };
      for (const Layout& layout : layouts) {
        for (const bool v_too : {false, true}) {
          std::vector<unsigned char> q, k, v;
          strided.q_view = scattered(plain.q_view, q, layout.q);
          strided.k_view = scattered(plain.k_view, k, layout.kv);
          strided.v_view = v_too ? scattered(plain.v_view, v, layout.kv) : plain.v_view;
          strided.run();
          expect_same(plain, strided, isa + " " + name(dtype) + " " + layout.name);
        }
      }
    }
  }
}

TEST(CpuBits, OneHeadExpandedIsTheSameAsCopies) {
  for (const std::string& isa : isas_for(DType::float32)) {
    const ForcedIsa forced(isa.c_str());
    Call copies({.h_q = 3, .h_kv = 3, .s_q = 9, .s_kv = 70, .d = 16, .d_v = 16});
    Call expanded = copies;
    for (std::int64_t j = 0; j < 70; ++j) {
      for (std::int64_t e = 0; e < 48; ++e) {
        copies.k.set(j * 48 + e, copies.k.get(j * 48 + e % 16));
        copies.v.set(j * 48 + e, copies.v.get(j * 48 + e % 16));
      }
    }
    expanded.k_view.data = copies.k.data();
    expanded.v_view.data = copies.v.data();
    expanded.k_view.strides[2] = expanded.v_view.strides[2] = 0;
    expanded.q_view.data = copies.q.data();
    expanded.o_view.data = expanded.o.data();
    expanded.lse_view.data = expanded.lse.data();
    copies.k_view.data = copies.k.data();
    copies.run();
    expanded.run();
    expect_same(copies, expanded, isa);
  }
}

TEST(CpuBits, OutputsStayInsideTheirBuffers) {
  for (const DType dtype : dtypes) {
    for (const std::string& isa : isas_for(dtype)) {
      const ForcedIsa forced(isa.c_str());
      Case c{.b = 2,
             .h_q = 2,
             .h_kv = 2,
             .s_q = 7,
             .s_kv = 65,
             .d = 5,
             .d_v = 9,
             .dtype = dtype,
             .out_dtype = dtype};
      Call plain(c), guarded(c);
      plain.run();
      // Rows of 9 of 13 elements, heads of 2 of 3, lse of every second float: what lies between
      // must keep its bytes.
      const std::array<std::int64_t, 4> o_strides{7 * 39, 39, 13, 1}, lse_strides{28, 14, 2, 1};
      const auto lse_rows = [](Call& call) {
        return TensorView(call.lse.data(), call.lse.dtype(), {2, 2, 7, 1});
      };
      std::vector<unsigned char> o_want, lse_want, o, lse;
      scattered(plain.o_view, o_want, o_strides);
      scattered(lse_rows(plain), lse_want, lse_strides);
      guarded.o_view = scattered(guarded.o_view, o, o_strides);
      const TensorView spread = scattered(lse_rows(guarded), lse, lse_strides);
      ASSERT_NE(o, o_want);
      guarded.lse_view.data = spread.data;
      for (int dim = 0; dim < 3; ++dim) guarded.lse_view.strides[dim] = spread.strides[dim];
      guarded.run();
      EXPECT_EQ(o, o_want) << isa << " " << name(dtype);
      EXPECT_EQ(lse, lse_want) << isa << " " << name(dtype);
    }
  }
}

/// NaN in K and V of these keys.
void poison(Call& call, std::int64_t begin, std::int64_t end) {
  const std::int64_t k_row = call.c.h_kv * call.c.d, v_row = call.c.h_kv * call.c.d_v;
  for (std::int64_t i = begin * k_row; i < end * k_row; ++i) call.k.set(i, nan);
  for (std::int64_t i = begin * v_row; i < end * v_row; ++i) call.v.set(i, nan);
}

TEST(CpuBits, HiddenNanTouchesNothing) {
  for (const DType dtype : dtypes) {
    for (const std::string& isa : isas_for(dtype)) {
      const ForcedIsa forced(isa.c_str());
      for (const std::int64_t s : {8, 150, 600}) {
        Case c{.h_q = 2,
               .h_kv = 1,
               .s_q = s,
               .s_kv = s,
               .d = 16,
               .d_v = 80,
               .dtype = dtype,
               .out_dtype = dtype};
        c.options.mask = "causal";
        const std::int64_t bad = s * 5 / 8;
        Call clean(c), poisoned(c);
        poison(poisoned, bad, bad + 1);
        clean.run();
        poisoned.run();
        for (std::int64_t i = 0; i < s * 160; ++i) {
          const bool sees = i / 160 >= bad;
          ASSERT_EQ(std::isnan(poisoned.o.get(i)), sees) << isa << " " << name(dtype) << " " << i;
          if (!sees) {
            ASSERT_EQ(poisoned.o.get(i), clean.o.get(i)) << isa << " " << name(dtype) << " " << i;
          }
        }
        for (std::int64_t i = 0; i < 2 * s; ++i) {
          ASSERT_EQ(std::isnan(poisoned.lse.get(i)), i % s >= bad);
          if (i % s < bad) {
            ASSERT_EQ(poisoned.lse.get(i), clean.lse.get(i));
          }
        }
      }
    }
  }
}

// A cache longer than its sequence, by lengths and by a score of -inf; an odd length, so that a
// bfloat16 pair is half hidden.
TEST(CpuBits, CacheTailsMayHoldAnything) {
  const std::int32_t lengths[] = {37, 300};
  for (const DType dtype : dtypes) {
    for (const std::string& isa : isas_for(dtype)) {
      const ForcedIsa forced(isa.c_str());
      for (const bool by_score : {false, true}) {
        Case c{.b = 2,
               .h_q = 1,
               .s_q = 3,
               .s_kv = 333,
               .d = 64,
               .d_v = 64,
               .dtype = dtype,
               .out_dtype = dtype};
        c.options.args = {{"n", TensorView(lengths, DType::int32, {2})}};
        (by_score ? c.options.score : c.options.mask) =
            by_score ? "k < n[b] ? s : -inf" : "lengths(n)";
        Call zeros(c), tails(c);
        for (std::int64_t b = 0; b < 2; ++b) {
          for (std::int64_t i = (b * 333 + lengths[b]) * 64; i < (b + 1) * 333 * 64; ++i) {
            zeros.k.set(i, 0.0);
            zeros.v.set(i, 0.0);
            tails.k.set(i, i % 2 ? nan : std::numeric_limits<double>::infinity());
            tails.v.set(i, i % 2 ? nan : -std::numeric_limits<double>::infinity());
          }
        }
        zeros.run();
        tails.run();
        expect_same(zeros, tails, isa + " " + name(dtype));
        for (std::int64_t i = 0; i < zeros.o_view.elements(); ++i) {
          ASSERT_TRUE(std::isfinite(zeros.o.get(i)));
        }
      }
    }
  }
}

}  // namespace
}  // namespace onepass::cpu_test
