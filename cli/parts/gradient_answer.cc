#include "cli/parts/gradient_answer.h"

#include <algorithm>
#include <cmath>

#include "cli/parts/error.h"
#include "cli/parts/random.h"
#include "cli/parts/reference_call.h"

namespace onepass::cli {
namespace {

struct Inputs {
  reference::Tensor q, k, v, dout;
  reference::Options options;
};

struct RowOfDq {
  std::vector<double> dq;
  double size = 0.0;  // the largest sum of what could cancel in one of them
};

// The formulas stand in reference/backward.cc.
RowOfDq row_of_dq(const Inputs& in, const reference::Attention& exact, double dlse, std::int64_t b,
                  std::int64_t h, std::int64_t row) {
  const reference::Row forward = exact.row(b, h, row);
  const reference::Sequence s = exact.sequence(b);
  const auto dout = [&](std::int64_t i) { return in.dout.at(s.q_batch, s.q_row + row, h, i); };
  double delta = -dlse, delta_size = std::abs(dlse);
  for (std::int64_t i = 0; i < in.v.shape[3]; ++i) {
    delta += dout(i) * forward.o[static_cast<std::size_t>(i)];
    delta_size += std::abs(dout(i) * forward.o[static_cast<std::size_t>(i)]);
  }
  std::vector<double> dq(static_cast<std::size_t>(in.q.shape[3]), 0.0), size = dq;
  for (const auto& logit : exact.logits(reference::Format::float64, b, h, row)) {
    const reference::Pair& at = logit.pair;
    double dp = 0.0, dp_size = 0.0;
    if (in.options.dropout.p == 0.0 || kept(in.options.dropout, b, h, row, at.col)) {
      for (std::int64_t i = 0; i < in.v.shape[3]; ++i) {
        const double product = dout(i) * in.v.at(s.k_batch, s.k_row + at.col, at.h_kv, i);
        dp += product, dp_size += std::abs(product);
      }
      dp /= 1.0 - in.options.dropout.p, dp_size /= 1.0 - in.options.dropout.p;
    }
    const double p = std::exp(logit.s - forward.lse);
    double ds = p * (dp - delta), ds_size = p * (dp_size + delta_size);
    if (exact.score()) {
      double slope = 0.0;
      for (const auto& [variable, rate] : exact.score()->score_tangent(at)) {
        if (!variable.array) slope += rate;
      }
      ds *= slope, ds_size *= std::abs(slope);
    }
    for (std::size_t i = 0; i < dq.size(); ++i) {
      const double key =
          in.k.at(s.k_batch, s.k_row + at.col, at.h_kv, static_cast<std::int64_t>(i));
      dq[i] += exact.scale() * ds * key;
      size[i] += std::abs(exact.scale() * ds_size * key);
    }
  }
  const double largest = size.empty() ? 0.0 : *std::max_element(size.begin(), size.end());
  return {dq, std::isfinite(largest) ? largest : 0.0};
}

struct Sum {
  double value = 0.0, size = 0.0, factors = 0.0;
};

// What is off by rounding: a share of what a sum is made of, and of each number `least`.
struct Rounding {
  double share, least;
};

// Over one head of (b, s, h, d) tensors; `size` adds up what could cancel.
void add_products(const reference::Tensor& x, const reference::Tensor& y, std::int64_t b,
                  std::int64_t h, Sum& sum) {
  for (std::int64_t s = 0; s < x.shape[1]; ++s) {
    for (std::int64_t i = 0; i < x.shape[3]; ++i) {
      const double product = x.at(b, s, h, i) * y.at(b, s, h, i);
      sum.value += product;
      sum.size += std::abs(product);
      sum.factors += std::abs(x.at(b, s, h, i));
    }
  }
}

// Whether sum over the group's query heads of <x, y> equals <z, w> of the key/value head.
bool add_up(const reference::Tensor& x, const reference::Tensor& y, const reference::Tensor& z,
            const reference::Tensor& w, const Rounding& rounding) {
  const auto differ = [&](const Sum& a, const Sum& c) {
    if (std::isnan(a.value) && std::isnan(c.value)) return false;
    const double allowed =
        rounding.share * (a.size + c.size) + rounding.least * (a.factors + c.factors);
    return !(std::abs(a.value - c.value) <= allowed);
  };
  const std::int64_t group = z.shape[2] == 0 ? 1 : x.shape[2] / z.shape[2];
  // Of each sequence; of all together where only one side is packed.
  const bool apart = x.shape[0] == z.shape[0];
  for (std::int64_t h = 0; h < z.shape[2]; ++h) {
    Sum queries, keys;
    for (std::int64_t b = 0; b < std::max(x.shape[0], z.shape[0]); ++b) {
      if (apart) queries = keys = {};
      for (std::int64_t g = 0; g < group && b < x.shape[0]; ++g) {
        add_products(x, y, b, h * group + g, queries);
      }
      if (b < z.shape[0]) add_products(z, w, b, h, keys);
      if (apart && differ(queries, keys)) return false;
    }
    if (differ(queries, keys)) return false;
  }
  return true;
}

struct Precision {
  double tolerance;  // a share of the largest value
  double rounding;   // of sums that cancel, a share of their terms: 16 roundings, or that of o
  double least;      // the distance of the smallest numbers
};

Precision precision_of(DType dtype) {
  switch (dtype) {
    case DType::bfloat16:
      return {4e-3, 0x1p-8, 0x1p-133};
    case DType::float16:
      return {1e-3, 0x1p-11, 0x1p-24};
    default:
      return {1e-5, 0x1p-20, 0x1p-149};
  }
}

}  // namespace

Answer check_gradients(const Case& made, std::int64_t rows) {
  Answer answer;
  const Backward& backward = made.backward;
  const Inputs in = {reference_tensor(made.q), reference_tensor(made.k), reference_tensor(made.v),
                     reference_tensor(backward.dout), reference_options(made.options)};
  const reference::Attention exact(in.q, in.k, in.v, in.options);
  const reference::Tensor dq = reference_tensor(backward.dq), dk = reference_tensor(backward.dk);
  const reference::Tensor dv = reference_tensor(backward.dv), o = reference_tensor(made.o);
  std::vector<double> through_lse;
  if (backward.dlse.given()) through_lse = reference_tensor(backward.dlse).data;
  const Precision precision = precision_of(made.q.dtype);
  double largest = 0.0, size = 0.0;
  Random random(7);
  const std::int64_t all = dq.shape[0] * dq.shape[1] * dq.shape[2];
  answer.rows = std::min(rows, all);
  for (std::int64_t i = 0; i < answer.rows; ++i) {
    const std::int64_t pick = i == 0 ? 0 : (i == 1 ? all - 1 : random.below(all));
    const std::int64_t row = pick % dq.shape[1];
    const std::int64_t h = pick / dq.shape[1] % dq.shape[2];
    const std::int64_t b = pick / dq.shape[1] / dq.shape[2];
    const auto place = static_cast<std::size_t>((b * dq.shape[2] + h) * dq.shape[1] + row);
    const double dlse = through_lse.empty() ? 0.0 : through_lse[place];
    std::int64_t sequence = b;
    while (row >= exact.sequence(sequence).q_row + exact.sequence(sequence).s_q) ++sequence;
    const std::int64_t first = exact.sequence(sequence).q_row;
    const RowOfDq wanted = row_of_dq(in, exact, dlse, sequence, h, row - first);
    for (std::int64_t j = 0; j < dq.shape[3]; ++j) {
      const double want = wanted.dq[static_cast<std::size_t>(j)];
      answer.error = larger_error(answer.error, error_of(dq.at(b, row, h, j), want));
      if (std::isfinite(want)) largest = std::max(largest, std::abs(want));
    }
    size = std::max(size, wanted.size);
  }
  answer.relative = largest > 0.0 ? answer.error / largest : answer.error;
  answer.allowed = precision.tolerance * largest + precision.rounding * size + precision.least;
  const Rounding rounding{precision.tolerance, precision.least};
  if (!add_up(in.q, dq, in.k, dk, rounding) || !add_up(o, in.dout, in.v, dv, rounding)) {
    answer.error = INFINITY;
  }
  return answer;
}

}  // namespace onepass::cli
