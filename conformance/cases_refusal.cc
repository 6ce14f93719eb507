// Arguments that must be refused before any write, and kinds of argument that must be read right.
#include <cmath>
#include <functional>
#include <limits>

#include "conformance/checker.h"
#include "conformance/every_case.h"

namespace onepass::conformance {
namespace {

// A valid call of views that each row below spoils in one place.
struct Views {
  TensorView q, k, v, o;
  Attention options;
  Exec exec;
};

// Makes two packed sequences of the call.
void pack(Views& c, const std::int32_t* cu_q, const std::int32_t* cu_k) {
  for (TensorView* view : {&c.q, &c.k, &c.v, &c.o, &c.options.lse}) *view = without_batch(*view);
  c.options.cu_seqlens_q = TensorView(cu_q, DType::int32, {3});
  c.options.cu_seqlens_k = TensorView(cu_k, DType::int32, {3});
}

struct Refusal {
  const char* begins;  // how the message must begin
  std::function<void(Views&)> spoil;
};

const std::vector<Refusal>& refusals() {
  static const double nan = std::numeric_limits<double>::quiet_NaN();
  static const std::int32_t q_offsets[] = {0, 1, 3}, k_offsets[] = {0, 4, 5}, late[] = {1, 2, 3};
  static const std::int32_t falling[] = {0, 4, 3}, short_of[] = {0, 1, 2}, one_more[] = {0, 4, 6};
  static const std::int32_t too_many[] = {6}, negative[] = {-1};
  static const std::vector<Refusal> rows = {
      {"cu_seqlens_q:", [](Views& c) { pack(c, late, k_offsets); }},
      {"cu_seqlens_q:", [](Views& c) { pack(c, falling, k_offsets); }},
      {"cu_seqlens_q:", [](Views& c) { pack(c, short_of, k_offsets); }},
      {"cu_seqlens_k:", [](Views& c) { pack(c, q_offsets, one_more); }},
      {"cu_seqlens_k:", [](Views& c) { pack(c, q_offsets, falling); }},
      {"seqused_k:",
       [](Views& c) { c.options.seqused_k = TensorView(too_many, DType::int32, {1}); }},
      {"seqused_k:",
       [](Views& c) { c.options.seqused_k = TensorView(negative, DType::int32, {1}); }},
      {"k:", [](Views& c) { c.q.shape[2] = c.o.shape[2] = 3; }},
      {"k:", [](Views& c) { c.q.shape[2] = c.o.shape[2] = 33; }},
      {"dropout:", [](Views& c) { c.options.dropout.p = -0.1; }},
      {"dropout:", [](Views& c) { c.options.dropout.p = 1.0; }},
      {"dropout:", [](Views& c) { c.options.dropout.p = nan; }},
      {"dropout:", [](Views& c) { c.options.dropout.row0 = 8; }},
      {"scale:", [](Views& c) { c.options.scale = nan; }},
      {"scale:", [](Views& c) { c.options.scale = INFINITY; }},
      {"k:", [](Views& c) { c.k.dtype = DType::bfloat16; }},
      {"v:", [](Views& c) { c.v.dtype = DType::float64; }},
      {"o:", [](Views& c) { c.o.dtype = DType::float16; }},
      {"q:", [](Views& c) { c.q.data = nullptr; }},
      {"k:", [](Views& c) { c.k.data = nullptr; }},
      {"v:", [](Views& c) { c.v.data = nullptr; }},
      {"o:", [](Views& c) { c.o.data = nullptr; }},
      {"lse:", [](Views& c) { c.options.lse.data = nullptr; }},
      {"lse:", [](Views& c) { c.options.lse.shape[2] = 4; }},
      {"o:", [](Views& c) { c.o.strides[1] = 0; }},
      {"q:", [](Views& c) { c.q.rank = 3; }},
      {"k:", [](Views& c) { c.k.shape[0] = 2; }},
      {"v:", [](Views& c) { c.v.shape[1] = 4; }},
      {"k:", [](Views& c) { c.k.shape[1] = -1; }},
      {"threads:", [](Views& c) { c.exec.threads = -2; }},
      {"mask", [](Views& c) { c.options.mask = "kk <= q"; }},
      {"mask", [](Views& c) { c.options.mask = "q - k"; }},
      {"mask", [](Views& c) { c.options.mask = "q // 0 == k"; }},
      {"mask", [](Views& c) { c.options.mask = "lengths(n)"; }},
      {"score", [](Views& c) { c.options.score = "s +"; }},
      {"score", [](Views& c) { c.options.score = "k <= q"; }},
      {"args:",
       [](Views& c) {
         c.options.args = {{"unread", std::int64_t{3}}};
       }},
  };
  return rows;
}

}  // namespace

Outcome d30_refusals(const Settings& settings) {
  Checker checker(settings);
  const Call base = generated({.h_q = 4, .h_kv = 2, .s_q = 3, .s_kv = 5, .d = 8, .d_v = 6});
  checker.check(base);
  for (const Refusal& refusal : refusals()) {
    // 33 heads fit the memory, so that only the argument is wrong.
    Storage q(DType::float32, std::array<std::int64_t, 4>{1, 3, 33, 8});
    Storage k(DType::float32, base.k.shape), v(DType::float32, base.v.shape);
    const Storage o(DType::float32, std::array<std::int64_t, 4>{1, 3, 33, 6});
    const Storage lse(DType::float32, std::array<std::int64_t, 3>{1, 4, 3});
    k.write(base.k.data), v.write(base.v.data);
    q.write(filled({1, 3, 33, 8}, 0.5).data);
    Views call{q.view(), k.view(), v.view(), o.view(), {}, {}};
    call.q.shape[2] = call.o.shape[2] = 4;
    call.options.lse = lse.view();
    call.exec.threads = settings.threads;
    refusal.spoil(call);
    std::string message = "nothing was refused";
    try {
      attention(call.q, call.k, call.v, call.o, call.options, call.exec);
    } catch (const Error& error) {
      message = error.what();
    }
    checker.expect(
        base, message.rfind(refusal.begins, 0) == 0,
        "the message should begin with " + std::string(refusal.begins) + " but is: " + message);
    checker.expect(base, o.untouched() && lse.untouched(),
                   "written to before it was refused: " + message);
  }

  // int64 lengths read as int32 made every second sequence empty; so for every integer type.
  for (const DType dtype : {DType::int32, DType::int64, DType::uint8}) {
    Call call = generated({.b = 3, .s_q = 4, .s_kv = 70, .d = 8, .d_v = 4});
    call.arguments = {{"n", NamedArray{dtype, {3}, {70, 1, 33}}}};
    for (const char* mask : {"lengths(n)", "prefix(n)", "k >= n[b] - 1"}) {
      call.mask = mask;
      checker.check(call);
    }
  }
  for (const DType dtype : {DType::float64, DType::float32, DType::bfloat16, DType::float16}) {
    Call call = generated({.h_q = 2, .h_kv = 2, .s_q = 4, .s_kv = 70, .d = 8, .d_v = 4});
    call.arguments = {{"x", NamedArray{dtype, {2}, {0.3, -1.7}}}};
    call.score = "s + x[h] * k";
    checker.check(call);
    call.score.clear();
    call.mask = "x[h] * k < 2.1";
    checker.check(call);
  }
  return checker.outcome();
}

}  // namespace onepass::conformance
