#include "outputs.h"

#include <array>
#include <span>
#include <string>
#include <vector>

#include "onepass/status.h"
#include "options.h"

namespace onepass::python {
namespace {

// (b, s, h, d) or, packed, (t, h, d).
TensorView imagine_o(const TensorView& q, const TensorView& v, DType dtype) {
  std::vector<std::int64_t> shape(q.shape.begin(), q.shape.begin() + q.rank);
  shape.back() = v.shape[static_cast<std::size_t>(v.rank) - 1];
  return imagine(dtype, shape, q.device);
}

TensorView imagine_lse(const TensorView& q) {
  const DType dtype = q.dtype == DType::float64 ? DType::float64 : DType::float32;
  if (q.rank == 3) return imagine(dtype, std::array{q.shape[1], q.shape[0]}, q.device);
  return imagine(dtype, std::array{q.shape[0], q.shape[2], q.shape[1]}, q.device);
}

}  // namespace

Outputs::Outputs(Given& given, const TensorView& q, const TensorView& v) {
  const bool whole = q.rank >= 3 && v.rank >= 3;
  const nb::object out = given.optional("out"), out_dtype = given.optional("out_dtype");
  const bool typed = !out_dtype.is_none();
  const DType dtype = typed ? read_dtype("out_dtype", out_dtype) : q.dtype;
  given_ = !out.is_none();
  if (given_) {
    out_array_ = write_array("out", out);
    o_ = out_array_.view;
    if (typed && o_.dtype != dtype) {
      throw Error(Status::type_error(std::string("out_dtype: ") + name(dtype) + " beside out's " +
                                     name(o_.dtype) +
                                     "; the two must be equal; leave one of them out"));
    }
  } else if (whole) {
    o_ = imagine_o(q, v, dtype);
  }
  const nb::object return_lse = given.otherwise("return_lse", nb::bool_(false));
  if (read_flag("return_lse", return_lse) && whole) lse_ = imagine_lse(q);
}

void Outputs::make(const Array& q) {
  if (o_.given() && !given_) {
    out_array_ = make_like(q, o_, o_.dtype);
    o_ = out_array_.view;
  }
  if (lse_.given()) {
    lse_array_ = make_like(q, lse_, lse_.dtype);
    lse_ = lse_array_.view;
  }
}

nb::object Outputs::result(const Array& q) const {
  const nb::object out = given_ ? out_array_.object : finish(q, out_array_);
  return lse_.given() ? nb::make_tuple(out, finish(q, lse_array_)) : out;
}

Array make_like(const Array& like, const TensorView& view, DType dtype) {
  return make_like(like, dtype, std::span(view.shape.data(), static_cast<std::size_t>(view.rank)));
}

}  // namespace onepass::python
