// The only place that checks what the host can see of a call.
#include <cmath>
#include <set>
#include <string>
#include <tuple>

#include "core/check.h"
#include "core/overlap.h"
#include "core/problem.h"
#include "lang/compile.h"

namespace onepass {
namespace {

// Positions stay far from the ends of int64, so that q - k and its like cannot overflow.
constexpr std::int64_t largest_position = std::int64_t{1} << 60;
constexpr std::int64_t largest_head_dim = 576;

Status check_dtypes(const Problem& p) {
  for (const auto& [argument, view] : {std::pair{"q", &p.q}, {"k", &p.k}, {"v", &p.v}}) {
    if (Status s = check::dtype(argument, *view,
                                {DType::float64, DType::float32, DType::bfloat16, DType::float16},
                                "convert it");
        !s.ok()) {
      return s;
    }
    if (view->dtype != p.q.dtype) {
      return Status::type_error(std::string(argument) + ": dtype " + name(view->dtype) +
                                " beside q's " + name(p.q.dtype) +
                                "; q, k and v have one dtype; convert one of them");
    }
  }
  if (p.dtype == DType::float64 || p.dtype == DType::float32) {
    return check::dtype("o", p.o, {p.dtype}, "give o the dtype of q");
  }
  return check::dtype("o", p.o, {p.dtype, DType::float32},
                      "give o the dtype of q or, for partial results, float32");
}

Status check_head_dims(const Problem& p) {
  for (const auto& [argument, dim, size] :
       {std::tuple{"q", "head dim d = ", p.d}, {"v", "head dim d_v = ", p.d_v}}) {
    if (size <= largest_head_dim) continue;
    return Status::invalid(std::string(argument) + ": " + dim + std::to_string(size) +
                           "; head dims up to " + std::to_string(largest_head_dim) +
                           " are allowed; check the order of the dims, (b, s, h, d)");
  }
  return {};
}

Status check_shapes(const Problem& p) {
  if (Status s =
          check::shape("k", p.k, {p.b, p.s_kv, p.h_kv, p.d}, "(b, s_kv, h_kv, d) with q's b, d");
      !s.ok()) {
    return s;
  }
  if (Status s = check::shape("v", p.v, {p.b, p.s_kv, p.h_kv, p.d_v},
                              "(b, s_kv, h_kv, d_v) with q's b and k's s_kv, h_kv");
      !s.ok()) {
    return s;
  }
  if (Status s = check::shape("o", p.o, {p.b, p.s_q, p.h_q, p.d_v},
                              "(b, s_q, h_q, d_v) with q's b, s_q, h_q and v's d_v");
      !s.ok()) {
    return s;
  }
  if (p.h_kv == 0 ? p.h_q != 0 : p.h_q % p.h_kv != 0) {
    return Status::invalid("k: " + std::to_string(p.h_kv) + " key/value heads for " +
                           std::to_string(p.h_q) +
                           " query heads; h_q must be a multiple of h_kv; repeat or drop heads");
  }
  return {};
}

Status check_outputs(const Problem& p) {
  if (Status s = check::writable("o", p.o); !s.ok()) return s;
  if (!p.lse.given()) return {};
  if (Status s = check::tensor("lse", p.lse, 3, "(b, h_q, s_q)"); !s.ok()) return s;
  if (Status s =
          check::dtype("lse", p.lse, {p.dtype == DType::float64 ? DType::float64 : DType::float32},
                       "allocate it in that dtype");
      !s.ok()) {
    return s;
  }
  if (Status s = check::shape("lse", p.lse, {p.b, p.h_q, p.s_q}, "(b, h_q, s_q)"); !s.ok())
    return s;
  return check::writable("lse", p.lse);
}

Status check_sink(const Problem& p) {
  if (!p.sink.given()) return {};
  if (Status s = check::tensor("sink", p.sink, 1, "(h_q)"); !s.ok()) return s;
  if (Status s =
          check::dtype("sink", p.sink,
                       {p.dtype == DType::float64 ? DType::float64 : DType::float32}, "convert it");
      !s.ok()) {
    return s;
  }
  return check::shape("sink", p.sink, {p.h_q}, "(h_q)");
}

Result<double> scale_of(const Problem& p, const Attention& options) {
  if (!options.scale) return p.d == 0 ? 1.0 : 1.0 / std::sqrt(static_cast<double>(p.d));
  if (std::isfinite(*options.scale)) return *options.scale;
  return Status::invalid("scale: " + std::to_string(*options.scale) +
                         "; any finite number is allowed; leave it out for 1 / sqrt(d)");
}

Result<StartOf> start_of(std::string_view argument, const std::optional<Start>& start,
                         std::int64_t otherwise, std::int64_t b) {
  StartOf result;
  result.number = otherwise;
  if (!start) return result;
  if (const auto* number = std::get_if<std::int64_t>(&*start)) {
    if (*number > largest_position || *number < -largest_position) {
      return Status::invalid(std::string(argument) + ": " + std::to_string(*number) +
                             "; positions lie within 2^60 of 0; pass the real position");
    }
    result.number = *number;
    return result;
  }
  result.array = std::get<TensorView>(*start);
  if (Status s = check::tensor(argument, result.array, 1, "(b)"); !s.ok()) return s;
  if (Status s = check::dtype(argument, result.array, {DType::int32, DType::int64}, "convert it");
      !s.ok()) {
    return s;
  }
  if (Status s = check::shape(argument, result.array, {b}, "(b)"); !s.ok()) return s;
  return result;
}

Status check_dropout(const Dropout& dropout) {
  if (!(dropout.p >= 0.0 && dropout.p < 1.0)) {
    return Status::invalid("dropout: p = " + std::to_string(dropout.p) +
                           "; 0 <= p < 1 is allowed; pass the share of weights to drop");
  }
  for (const auto& [argument, origin] : {std::pair{"row0", dropout.row0}, {"col0", dropout.col0}}) {
    if (origin < 0 || origin % 16 != 0) {
      return Status::invalid(std::string("dropout: ") + argument + " = " + std::to_string(origin) +
                             "; multiples of 16 from 0 on are allowed; cut chunks at such places");
    }
  }
  return {};
}

Status check_arguments(const std::vector<Argument>& arguments) {
  std::set<std::string_view> seen;
  for (const Argument& argument : arguments) {
    if (!seen.insert(argument.name).second) {
      return Status::invalid("args: '" + argument.name +
                             "' is given twice; each name once is allowed; drop one");
    }
    const auto* array = std::get_if<TensorView>(&argument.value);
    if (array == nullptr) continue;
    if (array->rank > max_rank || !array->given()) {
      return Status::invalid("args: '" + argument.name +
                             "' has no data; arrays of 0 to 4 dims and "
                             "numbers are allowed; pass one");
    }
    if (Status s = check::tensor(argument.name, *array, array->rank, "its own"); !s.ok()) return s;
  }
  return {};
}

// A name that no expression says is most likely a typing error.
Status check_arguments_used(const Problem& p) {
  for (const Argument& argument : p.args) {
    if (p.mask.names(argument.name) || p.score.names(argument.name)) continue;
    return Status::invalid(
        "args: '" + argument.name +
        "' is read by neither mask nor score; arguments the expressions name are "
        "allowed; check the spelling or drop it");
  }
  return {};
}

Status check_start_values(std::string_view argument, const StartOf& start, std::int64_t b) {
  if (Status s = check::memory(argument, start.array); !s.ok()) return s;
  for (std::int64_t i = 0; start.array.given() && i < b; ++i) {
    if (start.at(i) > largest_position || start.at(i) < -largest_position) {
      return Status::invalid(std::string(argument) + ": " + std::to_string(start.at(i)) +
                             " for sequence " + std::to_string(i) +
                             "; positions lie within 2^60 of 0; pass the real position");
    }
  }
  return {};
}

// Inputs are read while outputs are written.
Status check_outputs_apart(const Problem& p) {
  const auto apart = [](std::string_view output, const TensorView& written, std::string_view other,
                        const TensorView& view) {
    if (!overlap(written, view)) return Status{};
    return Status::invalid(std::string(output) + ": overlaps " + std::string(other) +
                           "; inputs are read while it is written; give it memory of its own");
  };
  for (const auto& [output, written] : {std::pair{"o", &p.o}, {"lse", &p.lse}}) {
    for (const auto& [input, view] : {std::pair{"q", &p.q},
                                      {"k", &p.k},
                                      {"v", &p.v},
                                      {"sink", &p.sink},
                                      {"q_start", &p.q_start.array},
                                      {"k_start", &p.k_start.array}}) {
      if (Status s = apart(output, *written, input, *view); !s.ok()) return s;
    }
    for (const lang::Program* program : {&p.mask, &p.score}) {
      for (const lang::Array& array : program->arrays) {
        if (Status s = apart(output, *written, array.name, array.view); !s.ok()) return s;
      }
    }
  }
  return apart("lse", p.lse, "o", p.o);
}

}  // namespace

Status validate_memory(const Problem& p) {
  for (const auto& [argument, view] : {std::pair{"q", &p.q},
                                       {"k", &p.k},
                                       {"v", &p.v},
                                       {"o", &p.o},
                                       {"lse", &p.lse},
                                       {"sink", &p.sink}}) {
    if (Status s = check::memory(argument, *view); !s.ok()) return s;
  }
  for (const lang::Program* program : {&p.mask, &p.score}) {
    for (const lang::Array& array : program->arrays) {
      if (Status s = check::memory(array.name, array.view); !s.ok()) return s;
    }
  }
  if (Status s = check_outputs_apart(p); !s.ok()) return s;
  if (Status s = check_start_values("q_start", p.q_start, p.b); !s.ok()) return s;
  return check_start_values("k_start", p.k_start, p.b);
}

Result<Problem> validate(const TensorView& q, const TensorView& k, const TensorView& v,
                         const TensorView& o, const Attention& options) {
  Problem p;
  if (Status s = check::tensor("q", q, 4, "(b, s_q, h_q, d)"); !s.ok()) return s;
  if (Status s = check::tensor("k", k, 4, "(b, s_kv, h_kv, d)"); !s.ok()) return s;
  if (Status s = check::tensor("v", v, 4, "(b, s_kv, h_kv, d_v)"); !s.ok()) return s;
  if (Status s = check::tensor("o", o, 4, "(b, s_q, h_q, d_v)"); !s.ok()) return s;
  p.q = q, p.k = k, p.v = v, p.o = o;
  p.lse = options.lse, p.sink = options.sink, p.dropout = options.dropout;
  p.dtype = q.dtype, p.out_dtype = o.dtype, p.device = q.device;
  p.b = q.shape[0], p.s_q = q.shape[1], p.h_q = q.shape[2], p.d = q.shape[3];
  p.s_kv = k.shape[1], p.h_kv = k.shape[2], p.d_v = v.shape[3];
  if (Status s = check_dtypes(p); !s.ok()) return s;
  if (Status s = check_head_dims(p); !s.ok()) return s;
  if (Status s = check_shapes(p); !s.ok()) return s;
  p.group = p.h_kv == 0 ? 1 : p.h_q / p.h_kv;
  if (Status s = check_outputs(p); !s.ok()) return s;
  if (Status s = check_sink(p); !s.ok()) return s;
  if (Status s = check_dropout(p.dropout); !s.ok()) return s;

  const Result<double> scale = scale_of(p, options);
  if (!scale.ok()) return scale.status();
  p.scale = scale.value();
  const bool bottom_right = options.align == Align::bottom_right;
  Result<StartOf> q_start =
      start_of("q_start", options.q_start, bottom_right ? p.s_kv - p.s_q : 0, p.b);
  if (!q_start.ok()) return q_start.status();
  p.q_start = q_start.value();
  Result<StartOf> k_start = start_of("k_start", options.k_start, 0, p.b);
  if (!k_start.ok()) return k_start.status();
  p.k_start = k_start.value();

  if (Status s = check_arguments(options.args); !s.ok()) return s;
  p.definitions = options.definitions, p.args = options.args;
  Result<lang::Program> mask =
      lang::compile(options.mask, lang::Kind::mask, options.args, options.definitions);
  if (!mask.ok()) return mask.status();
  p.mask = std::move(mask.value());
  p.has_mask = !p.mask.trivial();
  if (!options.score.empty()) {
    Result<lang::Program> score =
        lang::compile(options.score, lang::Kind::score, options.args, options.definitions);
    if (!score.ok()) return score.status();
    p.score = std::move(score.value());
    p.has_score = !p.score.trivial();
  }
  if (Status s = check_arguments_used(p); !s.ok()) return s;
  return p;
}

}  // namespace onepass
