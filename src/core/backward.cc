#include "core/backward.h"

#include <string>

#include "core/check.h"
#include "core/lengths.h"
#include "lang/derivative.h"

namespace onepass {
namespace {

/// Shaped as another tensor of the call.
struct Like {
  const char* argument;
  const TensorView& view;
  const char* model_name;
  const TensorView& model;
};

Status check_like(const Like& t, std::initializer_list<DType> dtypes) {
  const std::string dims = std::string("the shape of ") + t.model_name;
  if (Status s = check::tensor(t.argument, t.view, t.model.rank, dims); !s.ok()) return s;
  if (Status s = check::dtype(t.argument, t.view, dtypes, "convert it"); !s.ok()) return s;
  const auto& shape = t.model.shape;
  return t.model.rank == 1   ? check::shape(t.argument, t.view, {shape[0]}, dims)
         : t.model.rank == 2 ? check::shape(t.argument, t.view, {shape[0], shape[1]}, dims)
         : t.model.rank == 3
             ? check::shape(t.argument, t.view, {shape[0], shape[1], shape[2]}, dims)
             : check::shape(t.argument, t.view, {shape[0], shape[1], shape[2], shape[3]}, dims);
}

Status check_inputs(const Problem& p, const Backward& backward) {
  if (!p.lse.given()) {
    return Status::invalid(
        "lse: not given; the forward's, (b, h_q, s_q), is needed; ask attention() for it");
  }
  if (Status s = check_like({"dout", backward.dout, "o", backward.o}, {p.dtype, p.out_dtype});
      !s.ok()) {
    return s;
  }
  if (!backward.dlse.given()) return {};
  return check_like({"dlse", backward.dlse, "lse", backward.lse}, {p.lse.dtype});
}

Status check_gradients(const Problem& p, const Backward& backward, const TensorView& q,
                       const TensorView& k, const TensorView& v) {
  const DType sums = p.dtype == DType::float64 ? DType::float64 : DType::float32;
  const Like outputs[] = {{"dq", backward.dq, "q", q},
                          {"dk", backward.dk, "k", k},
                          {"dv", backward.dv, "v", v},
                          {"dsink", backward.dsink, "sink", p.sink}};
  for (const Like& output : outputs) {
    if (!output.view.given()) continue;
    if (!output.model.given()) {
      return Status::invalid(std::string(output.argument) + ": given without " + output.model_name +
                             "; it is the gradient of that; pass both or "
                             "neither");
    }
    if (Status s = check_like(output, {output.model.dtype, sums}); !s.ok()) return s;
    if (Status s = check::writable(output.argument, output.view); !s.ok()) return s;
  }
  return {};
}

}  // namespace

Result<Problem> validate_backward(const TensorView& q, const TensorView& k, const TensorView& v,
                                  const Backward& backward, const Attention& options) {
  Attention with_lse = options;
  with_lse.lse = backward.lse;
  Result<Problem> shared = validate(q, k, v, backward.o, with_lse, Pass::backward);
  if (!shared.ok()) return shared.status();
  Problem& p = shared.value();
  if (Status s = check_inputs(p, backward); !s.ok()) return s;
  if (Status s = check_gradients(p, backward, q, k, v); !s.ok()) return s;
  if (!backward.dargs.empty()) {
    return Status{Code::not_supported,
                  "dargs: " + std::to_string(backward.dargs.size()) +
                      " given; gradients of score arrays are not computed here; leave them out"};
  }
  const auto placed = [](const TensorView& view, const TensorView& packed_by) {
    return view.given() && packed_by.given() ? shared_by_sequences(view) : view;
  };
  p.dout = placed(backward.dout, p.cu_seqlens_q), p.dlse = placed(backward.dlse, p.cu_seqlens_q);
  p.dq = placed(backward.dq, p.cu_seqlens_q), p.dk = placed(backward.dk, p.cu_seqlens_k);
  p.dv = placed(backward.dv, p.cu_seqlens_k), p.dsink = backward.dsink;
  if (p.has_score) p.slope = lang::derivative_logit(p.score);
  return p;
}

}  // namespace onepass
