#include "core/backward.h"

#include <algorithm>
#include <set>
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
  if (Status s = check::tensor(t.argument, t.view, t.model.rank, dims, t.model.device); !s.ok())
    return s;
  if (Status s = check::dtype(t.argument, t.view, dtypes, "convert it"); !s.ok()) return s;
  const auto& shape = t.model.shape;
  if (t.model.rank == 0) return {};
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

// Checks dargs[i] against the argument of its name.
Status check_dargs(const Problem& p, const std::vector<ArgumentGradient>& dargs) {
  std::set<std::string_view> seen;
  for (const ArgumentGradient& one : dargs) {
    const std::string argument = "gradient of " + one.name;
    const TensorView* array = nullptr;
    for (const Argument& candidate : p.args) {
      if (candidate.name == one.name) array = std::get_if<TensorView>(&candidate.value);
    }
    if (array == nullptr || !is_float(array->dtype)) {
      return Status::invalid("dargs: '" + one.name +
                             "' is no float array; float arrays among args are allowed; check the "
                             "spelling or drop it");
    }
    if (!seen.insert(one.name).second) {
      return Status::invalid("dargs: '" + one.name +
                             "' is given twice; each name once is allowed; drop one");
    }
    const DType sums = p.dtype == DType::float64 ? DType::float64 : DType::float32;
    const Like output{argument.c_str(), one.gradient, one.name.c_str(), *array};
    if (Status s = check_like(output, {sums}); !s.ok()) return s;
    if (Status s = check::writable(argument, one.gradient); !s.ok()) return s;
  }
  return {};
}

// Whether a dim's index is one of these names.
bool indexed_by(const lang::ArrayDerivative& read, const TensorView& array,
                std::initializer_list<lang::Name> names) {
  for (std::size_t dim = 0; dim < read.index.size(); ++dim) {
    if (array.shape[dim] == 1) continue;
    const lang::Node& top = read.index[dim].top();
    if (top.op != lang::Op::name) continue;
    if (std::find(names.begin(), names.end(), top.name) != names.end()) return true;
  }
  return false;
}

void add_terms(Problem& p) {
  if (p.dargs.empty() || !p.has_score) return;
  using lang::Name;
  for (lang::ArrayDerivative& read : lang::derivative_arrays(p.score)) {
    const lang::Array& array = p.score.arrays[static_cast<std::size_t>(read.array)];
    const auto asked =
        std::find_if(p.dargs.begin(), p.dargs.end(),
                     [&](const ArgumentGradient& one) { return one.name == array.name; });
    if (asked == p.dargs.end()) continue;
    const bool own_sequence = p.b == 1 || indexed_by(read, array.view, {Name::b});
    const bool own_head = p.h_kv == 1 || indexed_by(read, array.view, {Name::h, Name::h_kv});
    const bool own_key = indexed_by(read, array.view, {Name::col, Name::k, Name::token_k});
    const bool own_row = indexed_by(read, array.view, {Name::row, Name::q, Name::token_q});
    p.terms.push_back({.darg = asked - p.dargs.begin(),
                       .factor = std::move(read.factor),
                       .place = std::move(read.place),
                       .own_head = own_sequence && own_head,
                       .own_key = own_key,
                       .own_pair = own_key && own_row});
  }
  // What one read owns another read of the same array may touch elsewhere.
  for (ArrayTerm& one : p.terms) {
    const auto same = [&](const ArrayTerm& other) { return other.darg == one.darg; };
    if (std::count_if(p.terms.begin(), p.terms.end(), same) > 1) {
      one.own_head = one.own_key = false;
    }
  }
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
  if (Status s = check_dargs(p, backward.dargs); !s.ok()) return s;
  p.dargs = backward.dargs;
  const auto placed = [](const TensorView& view, const TensorView& packed_by) {
    return view.given() && packed_by.given() ? shared_by_sequences(view) : view;
  };
  p.dout = placed(backward.dout, p.cu_seqlens_q), p.dlse = placed(backward.dlse, p.cu_seqlens_q);
  p.dq = placed(backward.dq, p.cu_seqlens_q), p.dk = placed(backward.dk, p.cu_seqlens_k);
  p.dv = placed(backward.dv, p.cu_seqlens_k), p.dsink = backward.dsink;
  if (p.has_score) p.slope = lang::derivative_logit(p.score);
  add_terms(p);
  return p;
}

}  // namespace onepass
