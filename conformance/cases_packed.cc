// Packed sequences: those without queries or without keys, and a row of documents.
#include <algorithm>

#include "conformance/checker.h"
#include "conformance/every_case.h"
#include "conformance/generator.h"

namespace onepass::conformance {
namespace {

// All of `gradient` (1, tokens, h, d) that belongs to the tokens [begin, end).
std::span<const double> tokens(std::span<const double> gradient, const reference::Tensor& like,
                               std::int64_t begin, std::int64_t end) {
  const std::int64_t row = like.shape[2] * like.shape[3];
  return gradient.subspan(static_cast<std::size_t>(begin * row),
                          static_cast<std::size_t>((end - begin) * row));
}

}  // namespace

Outcome d16_packed_without_queries(const Settings& settings) {
  Checker checker(settings);
  struct Probe {
    std::int64_t d;
    double o, dq, dk, dv;
  };
  for (const Probe& probe : {Probe{64, 1302.40278, 236.974179, 558.580639, 628.536319},
                             {256, 5480.41459, 1136.44156, 2686.70084, 2786.90295}}) {
    for (const DType dtype : float_dtypes) {
      Call call =
          generated({.h_q = 4, .h_kv = 1, .s_q = 20, .s_kv = 80, .d = probe.d, .d_v = probe.d});
      call.cu_seqlens_q = {0, 0, 12, 20, 20}, call.cu_seqlens_k = {0, 25, 42, 51, 80};
      call.mask = "causal";
      const BackwardCall backward = backward_of(call.in(dtype));
      const Gradients got = checker.check(backward);
      if (!got.ran) continue;
      for (const auto& gradient : {got.dk, got.dv}) {
        for (const auto& [begin, end] : {std::pair{0, 25}, {51, 80}}) {
          const auto unseen = tokens(gradient, call.k, begin, end);
          checker.same(backward, "dk and dv of a sequence without queries", unseen,
                       std::vector<double>(unseen.size(), 0.0));
        }
      }
      if (dtype != DType::float32) continue;
      checker.probe(backward, "sum |o|", sum_abs(got.forward.o), probe.o);
      checker.probe(backward, "sum |dq|", sum_abs(got.dq), probe.dq);
      checker.probe(backward, "sum |dk|", sum_abs(got.dk), probe.dk);
      checker.probe(backward, "sum |dv|", sum_abs(got.dv), probe.dv);
      if (probe.d == 64) {
        checker.close(backward, "dk[25, 0, 0]", tokens(got.dk, call.k, 25, 26)[0], -0.224900032,
                      1e-5);
      }
    }
  }
  // The kind: sequences without keys, without both, only some of the keys in use, one side packed.
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    for (const char* mask : {"full", "causal", "window(3, 2)", "token_q + 40 > token_k"}) {
      Call call = generated({.h_q = 4, .h_kv = 2, .s_q = 90, .s_kv = 150, .d = 16, .d_v = 8});
      call.cu_seqlens_q = {0, 20, 20, 20, 21, 90}, call.cu_seqlens_k = {0, 0, 70, 70, 80, 150};
      call.mask = mask;
      checker.check(backward_of(call.in(dtype)));
      call.seqused_k = {0, 65, 0, 1, 33};
      checker.check(backward_of(call.in(dtype)));
      Call queries =
          generated({.b = 5, .h_q = 4, .h_kv = 2, .s_q = 18, .s_kv = 40, .d = 16, .d_v = 8});
      queries.q = call.q;
      queries.mask = mask;
      queries.cu_seqlens_q = call.cu_seqlens_q;
      checker.check(backward_of(queries.in(dtype)));
      Call keys = call;
      keys.cu_seqlens_q.clear();
      keys.q = generated({.b = 5, .h_q = 4, .h_kv = 2, .s_q = 18, .d = 16}).q;
      checker.check(backward_of(keys.in(dtype)));
    }
  }
  return checker.outcome();
}

Outcome d17_no_keys(const Settings& settings) {
  Checker checker(settings);
  for (const DType dtype : float_dtypes) {
    Call call = generated({.h_q = 2, .h_kv = 2, .s_q = 9, .s_kv = 7, .d = 8, .d_v = 8});
    call.cu_seqlens_q = {0, 3, 5, 9}, call.cu_seqlens_k = {0, 4, 4, 7};
    const Call packed = call.in(dtype);
    const Answer answer = checker.check(packed);
    for (std::size_t h = 0; h < 2 && answer.ran; ++h) {
      checker.same(packed, "lse", std::span(answer.lse).subspan(h * 9 + 3, 2),
                   std::vector<double>{-infinity, -infinity});
    }
    if (!answer.ran) continue;
    const auto o = tokens(answer.o, {{1, 9, 2, 8}, {}}, 3, 5);
    checker.same(packed, "o", o, std::vector<double>(o.size(), 0.0));
  }
  return checker.outcome();
}

Outcome w07_packed_documents(const Settings& settings) {
  Checker checker(settings);
  std::vector<std::int64_t> cu;
  for (const std::int64_t end : {0, 300, 1100, 2048}) cu.push_back(end / settings.shrink);
  const std::int64_t s = cu.back();
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    Call packed =
        generated({.h_q = 16, .h_kv = 16, .s_q = s, .s_kv = s, .d = 64, .d_v = 64}).in(dtype);
    packed.cu_seqlens_q = packed.cu_seqlens_k = cu;
    packed.mask = "causal";
    const Gradients by_lengths = checker.check(backward_of(packed));
    // The same documents by their ids in one row.
    Call row = packed;
    row.cu_seqlens_q.clear(), row.cu_seqlens_k.clear();
    row.mask = "causal & document(ids)";
    std::vector<double> ids;
    for (std::int64_t i = 0; i < s; ++i) {
      ids.push_back(static_cast<double>(std::upper_bound(cu.begin(), cu.end(), i) - cu.begin()));
    }
    row.arguments = {{"ids", NamedArray{DType::int32, {1, s}, ids}}};
    const Gradients by_ids = checker.run(backward_of(row));
    if (!by_lengths.ran || !by_ids.ran) continue;
    const double tolerance = closed_form_tolerance(dtype);
    checker.close(packed, "o", by_lengths.forward.o, by_ids.forward.o, tolerance);
    checker.close(packed, "dq", by_lengths.dq, by_ids.dq, tolerance);
    checker.close(packed, "dk", by_lengths.dk, by_ids.dk, tolerance);
    checker.close(packed, "dv", by_lengths.dv, by_ids.dv, tolerance);
  }
  return checker.outcome();
}

}  // namespace onepass::conformance
