// A long problem in chunks of queries and keys: forward merged, backward added up, equals one call.
#include <algorithm>
#include <functional>

#include "conformance/checker.h"
#include "conformance/every_case.h"
#include "conformance/merged.h"

namespace onepass::conformance {
namespace {

struct Chunk {
  std::int64_t begin, end;
};

// Rows [begin, end) of the s dim.
reference::Tensor cut(const reference::Tensor& tensor, Chunk chunk) {
  const auto [b, s, h, d] = tensor.shape;
  reference::Tensor out{{b, chunk.end - chunk.begin, h, d}, {}};
  for (std::int64_t batch = 0; batch < b; ++batch) {
    const auto from = tensor.data.begin() + batch * s * h * d;
    out.data.insert(out.data.end(), from + chunk.begin * h * d, from + chunk.end * h * d);
  }
  return out;
}

// Adds `values`, rows [begin, end), to the whole.
void add(reference::Tensor& whole, Chunk chunk, std::span<const double> values) {
  const auto [b, s, h, d] = whole.shape;
  const std::int64_t each = (chunk.end - chunk.begin) * h * d;
  for (std::int64_t i = 0; i < b * each; ++i) {
    const std::int64_t place = i / each * s * h * d + chunk.begin * h * d + i % each;
    whole.data[static_cast<std::size_t>(place)] += values[static_cast<std::size_t>(i)];
  }
}

// The call over one chunk of queries and one of keys, at their places in the whole.
Call chunk_of(const Call& whole, Chunk rows, Chunk keys) {
  Call part = whole;
  part.q = cut(whole.q, rows), part.k = cut(whole.k, keys), part.v = cut(whole.v, keys);
  part.q_start = {rows.begin + whole.k.shape[1] - whole.q.shape[1]};
  part.k_start = {keys.begin};
  part.dropout.row0 = rows.begin, part.dropout.col0 = keys.begin;
  part.out_dtype = whole.dtype == DType::float64 ? DType::float64 : DType::float32;
  return part;
}

void check_chunks(Checker& checker, const Call& whole) {
  constexpr Chunk query_chunks[] = {{0, 16}, {16, 64}, {64, 75}};
  constexpr Chunk key_chunks[] = {{0, 32}, {32, 48}, {48, 90}};
  BackwardCall all = backward_of(whole);
  all.gradient_dtype = whole.dtype == DType::float64 ? DType::float64 : DType::float32;
  reference::Tensor o{all.dout.shape, std::vector<double>(all.dout.data.size(), 0.0)};
  reference::Tensor dq = filled(whole.q.shape, 0.0), dk = filled(whole.k.shape, 0.0);
  reference::Tensor dv = filled(whole.v.shape, 0.0);
  const std::int64_t lines = whole.q.shape[0] * whole.q.shape[2];
  std::vector<double> lse(static_cast<std::size_t>(lines * whole.q.shape[1]));
  std::vector<double> dslopes;
  for (const Chunk rows : query_chunks) {
    Answer merged_answer;
    for (const Chunk keys : key_chunks) {
      const Call part = chunk_of(whole, rows, keys);
      const Answer answer = checker.run(part);
      if (!answer.ran) return;
      if (keys.begin == 0) {
        merged_answer = answer;
        continue;
      }
      const Part both = merged(checker, part, part.out_dtype, {merged_answer.o, merged_answer.lse},
                               {answer.o, answer.lse});
      merged_answer.o = both.o, merged_answer.lse = both.lse;
    }
    add(o, rows, merged_answer.o);
    const std::int64_t count = rows.end - rows.begin;
    for (std::int64_t i = 0; i < lines * count; ++i) {
      lse[static_cast<std::size_t>(i / count * whole.q.shape[1] + rows.begin + i % count)] =
          merged_answer.lse[static_cast<std::size_t>(i)];
    }
    for (const Chunk keys : key_chunks) {
      BackwardCall part = backward_of(chunk_of(whole, rows, keys));
      part.dout = cut(all.dout, rows);
      part.gradient_dtype = all.gradient_dtype;
      if (!whole.score.empty()) part.dargs = {"slopes"};
      const Gradients gradients = run_backward(part, merged_answer, checker.settings().threads);
      if (!gradients.ran) return checker.fail(part, "refused: " + gradients.error);
      add(dq, rows, gradients.dq), add(dk, keys, gradients.dk), add(dv, keys, gradients.dv);
      if (whole.score.empty()) continue;
      const std::vector<double>& more = gradients.dargs.at("slopes");
      dslopes.resize(more.size(), 0.0);
      std::transform(more.begin(), more.end(), dslopes.begin(), dslopes.begin(), std::plus<>());
    }
  }
  Call wide_output = whole;
  wide_output.out_dtype = all.gradient_dtype;
  Answer answer;
  answer.o = o.data, answer.lse = lse;
  checker.matches(wide_output, answer);
  Gradients total;
  total.dq = dq.data, total.dk = dk.data, total.dv = dv.data;
  if (!whole.score.empty()) all.dargs = {"slopes"}, total.dargs["slopes"] = dslopes;
  checker.matches(all, total);
}

}  // namespace

Outcome d17_chunks(const Settings& settings) {
  Checker checker(settings);
  for (const DType dtype : float_dtypes) {
    for (const bool alibi : {false, true}) {
      for (const char* mask : {"full", "causal", "window(20, 3)", "document(ids)"}) {
        for (const double p : {0.0, 0.3}) {
          Call call =
              generated({.b = 2, .h_q = 4, .h_kv = 2, .s_q = 75, .s_kv = 90, .d = 16, .d_v = 8})
                  .in(dtype);
          call.mask = mask;
          call.dropout = {p, 77, 1};
          if (alibi) {
            call.score = "alibi(s, slopes)";
            call.arguments = {{"slopes", NamedArray{DType::float32, {4}, {0.5, 0.25, 0.1, 0.02}}}};
          }
          if (call.mask == "document(ids)") {
            std::vector<double> ids;
            for (std::int64_t i = 0; i < 180; ++i) ids.push_back(static_cast<double>(i % 90 / 37));
            call.arguments.push_back({"ids", NamedArray{DType::int32, {2, 90}, ids}});
          }
          check_chunks(checker, call);
        }
      }
    }
  }
  return checker.outcome();
}

}  // namespace onepass::conformance
