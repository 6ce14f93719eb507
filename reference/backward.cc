// Over the visible pairs (i, j) of a head, with s' = score(s), s = scale <q_i, k_j>:
//   P = exp(s' - max) / sum      Z = kept / (1 - p)          o_i = sum_j P Z v_j
//   dP = Z <dout_i, v_j>         delta_i = <dout_i, o_i>     dS' = P (dP - delta_i + dlse_i)
//   dv_j = sum_i P Z dout_i      dS = dS' ds'/ds             darg = sum dS' ds'/darg
//   dq_i = scale sum_j dS k_j    dk_j = scale sum_i dS q_i   dsink = sum exp(sink - max) / sum
//                                                                        (dlse - delta)
// Hidden and dropped pairs are left out, not multiplied by 0.
#include "reference/backward.h"

#include <cmath>
#include <limits>
#include <stdexcept>

namespace onepass::reference {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Tensor zeros_like(const Tensor& tensor) {
  return {tensor.shape, std::vector<double>(tensor.data.size(), 0.0)};
}

struct Place {
  std::int64_t b, s, h;
};

class Backward {
 public:
  Backward(Format format, bool absolute, const Tensor& dout, const Tensor& q, const Tensor& k,
           const Tensor& v, const Options& options, const std::vector<double>& dlse)
      : format_(format),
        absolute_(absolute),
        sums_(format == Format::float64 ? Format::float64 : Format::float32),
        call_(q, k, v, options),
        dout_(dout),
        q_(q),
        k_(k),
        v_(v),
        options_(options),
        dlse_(dlse) {
    const auto rows = static_cast<std::size_t>(q.shape[0] * q.shape[2] * q.shape[1]);
    if (dout.shape != std::array{q.shape[0], q.shape[1], q.shape[2], v.shape[3]}) {
      throw std::invalid_argument("dout is not of the output's shape");
    }
    if (!dlse.empty() && dlse.size() != rows) throw std::invalid_argument("dlse is not (b, h, s)");
    out_.dq = zeros_like(q), out_.dk = zeros_like(k), out_.dv = zeros_like(v);
    out_.dsink.assign(options.sink.size(), 0.0);
    // A score points into its own copy of the arguments.
    const auto& arguments = call_.score() ? call_.score()->arguments() : options.arguments;
    for (const Argument& argument : arguments) {
      const auto* array = std::get_if<Array>(&argument.value);
      if (!array || array->type != Type::real) continue;
      out_.darguments[argument.name].assign(array->reals.size(), 0.0);
      darray_[array] = &out_.darguments[argument.name];
    }
  }

  Gradients take() {
    for (std::int64_t b = 0; b < call_.sequences(); ++b) {
      for (std::int64_t h = 0; h < q_.shape[2]; ++h) {
        for (std::int64_t i = 0; i < call_.sequence(b).s_q; ++i) row(b, h, i);
      }
    }
    return std::move(out_);
  }

 private:
  double sum(double x) const { return round_to(sums_, x); }
  double stored(double x) const { return round_to(format_, x); }
  double term(double x) const { return sum(absolute_ ? std::fabs(x) : x); }

  // y[to] += factor * x[from], over the channels.
  void add(double factor, const Tensor& x, Place from, Tensor& y, Place to) const {
    for (std::int64_t i = 0; i < y.shape[3]; ++i) {
      const std::int64_t at = ((to.b * y.shape[1] + to.s) * y.shape[2] + to.h) * y.shape[3] + i;
      double& total = y.data[static_cast<std::size_t>(at)];
      total = sum(total + term(factor * x.at(from.b, from.s, from.h, i)));
    }
  }

  void row(std::int64_t b, std::int64_t h, std::int64_t row) {
    const Sequence at = call_.sequence(b);
    const Place query{at.q_batch, at.q_row + row, h};
    const auto visible = call_.logits(sums_, b, h, row);
    const Row forward = call_.attend(visible, sums_, format_, b, h, row);
    double delta = 0.0;
    for (std::int64_t i = 0; i < v_.shape[3] && !visible.empty(); ++i) {
      const double o = stored(forward.o[static_cast<std::size_t>(i)]);
      delta = sum(delta + term(dout_.at(query.b, query.s, h, i) * o));
    }
    const std::int64_t place = (query.b * q_.shape[2] + h) * q_.shape[1] + query.s;
    const double dlse = dlse_.empty() ? 0.0 : term(dlse_[static_cast<std::size_t>(place)]);
    const double dlse_minus_delta = sum(absolute_ ? dlse + delta : dlse - delta);
    if (!options_.sink.empty()) {
      const auto head = static_cast<std::size_t>(h);
      const double sink = options_.sink[head];
      const double weight = sink == forward.max ? 1.0 : sum(std::exp(sink - forward.max));
      const double p = sum(weight / forward.sum);
      double& dsink = out_.dsink[head];
      if (sink != -infinity) dsink = sum(dsink + sum(p * dlse_minus_delta));
    }
    for (const Attention::Logit& logit : visible) {
      pair(logit, query, at, forward, dlse_minus_delta);
    }
  }

  void pair(const Attention::Logit& logit, Place query, const Sequence& sequence, const Row& row,
            double dlse_minus_delta) {
    const Pair& at = logit.pair;
    const Place key{sequence.k_batch, sequence.k_row + at.col, at.h_kv};
    const double p = sum(sum(std::exp(logit.s - row.max)) / row.sum);
    double dp = 0.0;
    const Dropout& dropout = options_.dropout;
    if (dropout.p == 0.0 || kept(dropout, at.b, at.h, at.row, at.col)) {
      const double z = 1.0 / (1.0 - dropout.p);
      for (std::int64_t i = 0; i < v_.shape[3]; ++i) {
        const double product =
            dout_.at(query.b, query.s, query.h, i) * v_.at(key.b, key.s, key.h, i);
        dp = sum(dp + term(product));
      }
      dp = sum(z * dp);
      add(stored(p * z), dout_, query, out_.dv, key);
    }
    const double ds = sum(p * sum(dp + dlse_minus_delta));
    if (ds == 0.0) return;
    if (!call_.score()) return add_logit(ds, query, key);
    for (const auto& [variable, rate] : call_.score()->score_tangent(at)) {
      if (rate == 0.0) continue;
      if (variable.array) {
        double& total = (*darray_.at(variable.array))[variable.element];
        total = sum(total + term(ds * rate));
      } else {
        add_logit(ds * rate, query, key);
      }
    }
  }

  // The gradient of scale <q_i, k_j>.
  void add_logit(double ds, Place query, Place key) {
    const double scaled = stored(call_.scale() * sum(ds));
    add(scaled, k_, key, out_.dq, query);
    add(scaled, q_, query, out_.dk, key);
  }

  Format format_;
  bool absolute_;
  Format sums_;
  Attention call_;
  const Tensor &dout_, &q_, &k_, &v_;
  const Options& options_;
  const std::vector<double>& dlse_;
  Gradients out_;
  std::map<const Array*, std::vector<double>*> darray_;
};

}  // namespace

Gradients attention_backward(const Tensor& dout, const Tensor& q, const Tensor& k, const Tensor& v,
                             const Options& options, const std::vector<double>& dlse) {
  return Backward(Format::float64, false, dout, q, k, v, options, dlse).take();
}

Gradients plain_backward(Format format, const Tensor& dout, const Tensor& q, const Tensor& k,
                         const Tensor& v, const Options& options, const std::vector<double>& dlse) {
  return Backward(format, false, dout, q, k, v, options, dlse).take();
}

Gradients absolute_terms(const Tensor& dout, const Tensor& q, const Tensor& k, const Tensor& v,
                         const Options& options, const std::vector<double>& dlse) {
  return Backward(Format::float64, true, dout, q, k, v, options, dlse).take();
}

}  // namespace onepass::reference
