// o and lse of a call: the caller's `out`, or new arrays of the kind of q.
#pragma once

#include "arrays.h"
#include "given.h"

namespace onepass::python {

/// Made in two steps, so that plan() needs no memory: the views first, then the arrays.
class Outputs {
 public:
  /// Takes out, out_dtype and return_lse. Where q or v have a rank that the library will refuse
  /// there is no output.
  Outputs(Given& given, const TensorView& q, const TensorView& v);

  const TensorView& o() const { return o_; }
  const TensorView& lse() const { return lse_; }

  /// Gives both views their memory.
  void make(const Array& q);
  /// out, or (out, lse), as the caller sees them.
  nb::object result(const Array& q) const;

 private:
  TensorView o_, lse_;
  Array out_array_, lse_array_;
  bool given_ = false;
};

/// A new array of the kind of `like`, shaped as `view`.
Array make_like(const Array& like, const TensorView& view, DType dtype);

}  // namespace onepass::python
