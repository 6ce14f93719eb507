// The only place that checks what the host can see of a call.
#include <cmath>
#include <cstdio>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

#include "core/check.h"
#include "core/form_arrays.h"
#include "core/kv_cache.h"
#include "core/lengths.h"
#include "core/overlap.h"
#include "core/problem.h"
#include "lang/compile_once.h"

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

// (b, rows, heads, width), or (rows, heads, width) where packed.
struct Dims {
  bool packed;
  std::int64_t b, rows, heads, width;
  std::string_view dims, packed_dims;
};

Status check_dims(std::string_view argument, const TensorView& view, const Dims& d) {
  return d.packed ? check::shape(argument, view, {d.rows, d.heads, d.width}, d.packed_dims)
                  : check::shape(argument, view, {d.b, d.rows, d.heads, d.width}, d.dims);
}

// The sizes of the call, from the tensors as they were given.
Status take_sizes(const TensorView& q, const TensorView& k, const TensorView& v,
                  const TensorView& o, const Attention& options, Problem& p) {
  const bool packed_q = options.cu_seqlens_q.given(), packed_k = options.cu_seqlens_k.given();
  const auto tensor = [&](std::string_view argument, const TensorView& view, bool packed,
                          std::string_view dims, std::string_view packed_dims) {
    return check::tensor(argument, view, packed ? 3 : 4, packed ? packed_dims : dims, q.device);
  };
  for (const Status& s :
       {tensor("q", q, packed_q, "(b, s_q, h_q, d)", "(t_q, h_q, d) beside cu_seqlens_q"),
        tensor("k", k, packed_k, "(b, s_kv, h_kv, d)", "(t_kv, h_kv, d) beside cu_seqlens_k"),
        tensor("v", v, packed_k, "(b, s_kv, h_kv, d_v)", "(t_kv, h_kv, d_v) beside cu_seqlens_k"),
        tensor("o", o, packed_q, "(b, s_q, h_q, d_v)", "(t_q, h_q, d_v) beside cu_seqlens_q"),
        packed_q ? check_cu_seqlens("cu_seqlens_q", options.cu_seqlens_q) : Status{},
        packed_k ? check_cu_seqlens("cu_seqlens_k", options.cu_seqlens_k) : Status{}}) {
    if (!s.ok()) return s;
  }
  p.q = packed_q ? shared_by_sequences(q) : q, p.o = packed_q ? shared_by_sequences(o) : o;
  p.k = packed_k ? shared_by_sequences(k) : k, p.v = packed_k ? shared_by_sequences(v) : v;
  p.cu_seqlens_q = options.cu_seqlens_q, p.cu_seqlens_k = options.cu_seqlens_k;
  p.seqused_k = options.seqused_k;
  p.b = packed_q ? options.cu_seqlens_q.shape[0] - 1 : q.shape[0];
  p.s_q = p.q.shape[1], p.h_q = p.q.shape[2], p.d = p.q.shape[3];
  p.s_kv = p.k.shape[1], p.h_kv = p.k.shape[2], p.d_v = p.v.shape[3];
  p.dtype = q.dtype, p.out_dtype = o.dtype, p.device = q.device;
  p.group = p.h_kv == 0 ? 1 : p.h_q / p.h_kv;
  return {};
}

Status check_shapes(const TensorView& k, const TensorView& v, const TensorView& o,
                    const Problem& p) {
  const bool packed_q = p.cu_seqlens_q.given(), packed_k = p.cu_seqlens_k.given();
  for (const Status& s :
       {check_dims("k", k,
                   {packed_k, p.b, p.s_kv, p.h_kv, p.d, "(b, s_kv, h_kv, d) with q's b, d",
                    "(t_kv, h_kv, d) with q's d"}),
        check_dims("v", v,
                   {packed_k, p.b, p.s_kv, p.h_kv, p.d_v,
                    "(b, s_kv, h_kv, d_v) with q's b and k's s_kv, h_kv",
                    "(t_kv, h_kv, d_v) with k's t_kv, h_kv"}),
        check_dims("o", o,
                   {packed_q, p.b, p.s_q, p.h_q, p.d_v,
                    "(b, s_q, h_q, d_v) with q's b, s_q, h_q and v's d_v",
                    "(t_q, h_q, d_v) with q's t_q, h_q and v's d_v"}),
        packed_k ? check::shape("cu_seqlens_k", p.cu_seqlens_k, {p.b + 1}, "(b + 1) with q's b")
                 : Status{},
        p.seqused_k.given() ? check_per_sequence("seqused_k", p.seqused_k, p.b) : Status{}}) {
    if (!s.ok()) return s;
  }
  if (p.h_kv == 0 ? p.h_q != 0 : p.h_q % p.h_kv != 0) {
    return Status::invalid("k: " + std::to_string(p.h_kv) + " key/value heads for " +
                           std::to_string(p.h_q) +
                           " query heads; h_q must be a multiple of h_kv; repeat or drop heads");
  }
  return {};
}

// lse becomes (b, h_q, s_q), with stride 0 along b where packed.
Status take_lse(const TensorView& lse, Problem& p) {
  if (!lse.given()) return {};
  const bool packed = p.cu_seqlens_q.given();
  const char* dims = packed ? "(h_q, t_q)" : "(b, h_q, s_q)";
  if (Status s = check::tensor("lse", lse, packed ? 2 : 3, dims, p.device); !s.ok()) return s;
  if (Status s =
          check::dtype("lse", lse, {p.dtype == DType::float64 ? DType::float64 : DType::float32},
                       "allocate it in that dtype");
      !s.ok()) {
    return s;
  }
  if (Status s = packed ? check::shape("lse", lse, {p.h_q, p.s_q}, dims)
                        : check::shape("lse", lse, {p.b, p.h_q, p.s_q}, dims);
      !s.ok()) {
    return s;
  }
  p.lse = packed ? shared_by_sequences(lse) : lse;
  return p.pass == Pass::forward ? check::writable("lse", lse) : Status{};
}

Status check_sink(const Problem& p) {
  if (!p.sink.given()) return {};
  if (Status s = check::tensor("sink", p.sink, 1, "(h_q)", p.device); !s.ok()) return s;
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
  const double scale = *options.scale;
  if (!std::isfinite(scale)) {
    return Status::invalid("scale: " + std::to_string(scale) +
                           "; any finite number is allowed; leave it out for 1 / sqrt(d)");
  }
  constexpr double most = 0x1p252;  // two float32 factors
  if (p.dtype == DType::float64 || std::abs(scale) <= most) return scale;
  char found[32];
  std::snprintf(found, sizeof found, "%.6g", scale);
  return Status::invalid("scale: " + std::string(found) +
                         "; up to 2^252 is allowed where inputs are not float64; multiply q by a "
                         "part of it");
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

Status check_arguments(const std::vector<Argument>& arguments, Device device) {
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
    if (Status s = check::tensor(argument.name, *array, array->rank, "its own", device); !s.ok()) {
      return s;
    }
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

struct Named {
  Named(std::string_view name, const TensorView* view, const char* before = "")
      : name(name), view(view), before(before), bytes(byte_range(*view)) {}
  std::string_view name;
  const TensorView* view;
  const char* before;  // the name
  ByteRange bytes;
  std::string full_name() const { return before + std::string(name); }
};

std::vector<Named> inputs_of(const Problem& p) {
  std::vector<Named> all;
  all.reserve(16);
  const auto add = [&](std::string_view name, const TensorView& view) {
    if (view.given()) all.emplace_back(name, &view);
  };
  const CacheUse& c = p.cache;
  add("q", p.q), add("sink", p.sink);
  // A cache that is appended to is an output.
  if (c.s_new == 0) add(c.given ? "cache.k" : "k", p.k), add(c.given ? "cache.v" : "v", p.v);
  add("cu_seqlens_q", p.cu_seqlens_q), add("cu_seqlens_k", p.cu_seqlens_k);
  add(c.given ? "cache.seqlens" : "seqused_k", p.seqused_k);
  add("cache.block_table", c.block_table), add("cache.batch_idx", c.batch_idx);
  add("cache.k_new", c.k_new), add("cache.v_new", c.v_new);
  add("rotary.cos", c.cos), add("rotary.sin", c.sin);
  add("q_start", p.q_start.array), add("k_start", p.k_start.array);
  for (const lang::Program* program : {&p.mask, &p.score}) {
    for (const lang::Array& array : program->arrays) add(array.name, array.view);
  }
  if (p.pass == Pass::forward) return all;
  add("o", p.o), add("lse", p.lse), add("dout", p.dout), add("dlse", p.dlse);
  return all;
}

std::vector<Named> outputs_of(const Problem& p) {
  std::vector<Named> all;
  all.reserve(8);
  const auto add = [&](std::string_view name, const TensorView& view, const char* before = "") {
    if (view.given()) all.emplace_back(name, &view, before);
  };
  if (p.pass == Pass::forward) {
    add("o", p.o), add("lse", p.lse);
    if (p.cache.s_new > 0) add("cache.v", p.v), add("cache.k", p.k);
    return all;
  }
  add("dq", p.dq), add("dk", p.dk), add("dv", p.dv), add("dsink", p.dsink);
  for (const ArgumentGradient& one : p.dargs) add(one.name, one.gradient, "gradient of ");
  return all;
}

Status check_apart(const Named& written, const Named& other) {
  if (!meet(written.bytes, other.bytes) || !overlap(*written.view, *other.view)) return {};
  return Status::invalid(written.full_name() + ": overlaps " + other.full_name() +
                         "; inputs are read while it is written; give it memory of its own");
}

}  // namespace

Status validate_memory(const Problem& p) {
  const std::vector<Named> inputs = inputs_of(p), outputs = outputs_of(p);
  for (const auto* tensors : {&inputs, &outputs}) {
    for (const Named& one : *tensors) {
      if (one.view->data != nullptr) continue;
      if (Status s = check::memory(one.full_name(), *one.view); !s.ok()) return s;
    }
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    for (const Named& input : inputs) {
      if (Status s = check_apart(outputs[i], input); !s.ok()) return s;
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (Status s = check_apart(outputs[i], outputs[j]); !s.ok()) return s;
    }
  }
  if (Status s = check_lengths(p); !s.ok()) return s;
  if (Status s = check_cache(p); !s.ok()) return s;
  if (Status s = check_start_values("q_start", p.q_start, p.b); !s.ok()) return s;
  return check_start_values("k_start", p.k_start, p.b);
}

Result<Problem> validate(const TensorView& q, const TensorView& k, const TensorView& v,
                         const TensorView& o, const Attention& options, Pass pass) {
  Problem p;
  p.pass = pass;
  if (Status s = take_sizes(q, k, v, o, options, p); !s.ok()) return s;
  p.sink = options.sink, p.dropout = options.dropout;
  if (Status s = check_dtypes(p); !s.ok()) return s;
  if (Status s = check_head_dims(p); !s.ok()) return s;
  if (Status s = check_shapes(k, v, o, p); !s.ok()) return s;
  if (Status s = pass == Pass::forward ? check::writable("o", o) : Status{}; !s.ok()) return s;
  if (Status s = take_lse(options.lse, p); !s.ok()) return s;
  if (Status s = check_sink(p); !s.ok()) return s;
  if (Status s = check::dropout(p.dropout); !s.ok()) return s;

  const Result<double> scale = scale_of(p, options);
  if (!scale.ok()) return scale.status();
  p.scale = scale.value();
  const bool bottom_right = options.align == Align::bottom_right;
  p.ends_meet = bottom_right && !options.q_start && p.varlen();
  Result<StartOf> q_start =
      start_of("q_start", options.q_start, bottom_right && !p.ends_meet ? p.s_kv - p.s_q : 0, p.b);
  if (!q_start.ok()) return q_start.status();
  p.q_start = q_start.value();
  Result<StartOf> k_start = start_of("k_start", options.k_start, 0, p.b);
  if (!k_start.ok()) return k_start.status();
  p.k_start = k_start.value();

  if (Status s = check_arguments(options.args, p.device); !s.ok()) return s;
  p.definitions = options.definitions, p.args = options.args;
  Result<lang::Program> mask =
      lang::compile_once(options.mask, lang::Kind::mask, options.args, options.definitions);
  if (!mask.ok()) return mask.status();
  p.mask = std::move(mask.value());
  p.has_mask = !p.mask.trivial();
  if (!options.score.empty()) {
    Result<lang::Program> score =
        lang::compile_once(options.score, lang::Kind::score, options.args, options.definitions);
    if (!score.ok()) return score.status();
    p.score = std::move(score.value());
    p.has_score = !p.score.trivial();
  }
  if (Status s = check_arguments_used(p); !s.ok()) return s;
  if (Status s = check_form_arrays(p); !s.ok()) return s;
  return p;
}

}  // namespace onepass
