#include "conformance/merged.h"

#include <array>

namespace onepass::conformance {

Part merged(Checker& checker, const Call& call, DType dtype, const Part& a, const Part& b) {
  const Shape s = call.shape();
  const std::array o_shape{s.b, s.s_q, s.h_q, s.d_v};
  const std::array lse_shape{s.b, s.h_q, s.s_q};
  const DType lse_dtype = dtype == DType::float64 ? dtype : DType::float32;
  Storage o(dtype, o_shape), lse(lse_dtype, lse_shape);
  Storage o_other(dtype, o_shape), lse_other(lse_dtype, lse_shape);
  o.write(a.o), lse.write(a.lse), o_other.write(b.o), lse_other.write(b.lse);
  try {
    Exec exec;
    exec.threads = checker.settings().threads;
    merge(o.view(), lse.view(), o_other.view(), lse_other.view(), exec);
  } catch (const Error& error) {
    checker.fail(call, std::string("merge refused: ") + error.what());
  }
  checker.expect(call, o.guards_hold() && lse.guards_hold(), "merge wrote outside o or lse");
  return {o.read(), lse.read()};
}

}  // namespace onepass::conformance
