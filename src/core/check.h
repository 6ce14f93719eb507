// Building blocks of validate: each returns ok or one message of the form
// `argument: what was found; what is allowed; what to try`.
#pragma once

#include <initializer_list>
#include <string_view>

#include "onepass/attention.h"
#include "onepass/status.h"
#include "onepass/tensor.h"

namespace onepass::check {

/// Given, of this rank, with sizes >= 0 whose product and byte offsets fit int64, on `device`.
Status tensor(std::string_view argument, const TensorView& view, int rank, std::string_view dims,
              Device device = {});

/// Not null, unless empty or not given.
Status memory(std::string_view argument, const TensorView& view);

/// One of these dtypes.
Status dtype(std::string_view argument, const TensorView& view,
             std::initializer_list<DType> allowed, std::string_view try_this);

/// Exactly this shape; `dims` names it, as in "(b, h_q, s_q)".
Status shape(std::string_view argument, const TensorView& view,
             std::initializer_list<std::int64_t> wanted, std::string_view dims);

/// No two elements share memory because of a stride of 0: needed of everything that is written.
Status writable(std::string_view argument, const TensorView& view);

/// p in [0, 1), origins multiples of 16.
Status dropout(const Dropout& dropout);

}  // namespace onepass::check
