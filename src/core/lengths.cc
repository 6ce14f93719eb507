#include "core/lengths.h"

#include <string>

#include "core/check.h"

namespace onepass {
namespace {

Status check_integers(std::string_view argument, const TensorView& view, std::string_view dims) {
  if (Status s = check::tensor(argument, view, 1, dims); !s.ok()) return s;
  return check::dtype(argument, view, {DType::int32, DType::int64}, "convert it");
}

std::string at(std::string_view argument, std::int64_t i) {
  return std::string(argument) + ": [" + std::to_string(i) + "] = ";
}

Status check_offsets(std::string_view argument, const TensorView& view, std::int64_t tokens) {
  if (!view.given()) return {};
  if (Status s = check::memory(argument, view); !s.ok()) return s;
  const std::int64_t last = view.shape[0] - 1;
  std::int64_t before = 0;
  for (std::int64_t i = 0; i <= last; ++i) {
    const std::int64_t offset = integer_at(view, i);
    if (i == 0 && offset != 0) {
      return Status::invalid(at(argument, 0) + std::to_string(offset) +
                             "; the first sequence starts at 0; pass the running sum of lengths");
    }
    if (offset < before) {
      return Status::invalid(at(argument, i) + std::to_string(offset) + " after " +
                             std::to_string(before) +
                             "; offsets do not decrease; pass the running sum of lengths");
    }
    before = offset;
  }
  if (before == tokens) return {};
  return Status::invalid(at(argument, last) + std::to_string(before) + " for " +
                         std::to_string(tokens) +
                         " tokens; the last offset is the number of tokens; pass the running sum "
                         "of lengths or the tensor's used part");
}

}  // namespace

TensorView shared_by_sequences(const TensorView& packed) {
  TensorView view = packed;
  view.rank = packed.rank + 1;
  for (auto dim = static_cast<std::size_t>(packed.rank); dim > 0; --dim) {
    view.shape[dim] = packed.shape[dim - 1];
    view.strides[dim] = packed.strides[dim - 1];
  }
  view.shape[0] = 1;
  view.strides[0] = 0;
  return view;
}

Status check_cu_seqlens(std::string_view argument, const TensorView& view) {
  if (Status s = check_integers(argument, view, "(b + 1)"); !s.ok()) return s;
  if (view.shape[0] > 0) return {};
  return Status::invalid(std::string(argument) +
                         ": no element; b + 1 offsets, from 0 to the number of tokens, are "
                         "needed; pass the running sum of lengths");
}

Status check_per_sequence(std::string_view argument, const TensorView& view, std::int64_t b) {
  if (Status s = check_integers(argument, view, "(b)"); !s.ok()) return s;
  return check::shape(argument, view, {b}, "(b)");
}

Status check_lengths(const Problem& p) {
  if (Status s = check_offsets("cu_seqlens_q", p.cu_seqlens_q, p.s_q); !s.ok()) return s;
  if (Status s = check_offsets("cu_seqlens_k", p.cu_seqlens_k, p.s_kv); !s.ok()) return s;
  if (!p.seqused_k.given() || p.cache.given) return {};  // check_cache knows a cache's
  if (Status s = check::memory("seqused_k", p.seqused_k); !s.ok()) return s;
  for (std::int64_t b = 0; b < p.b; ++b) {
    const std::int64_t room =
        p.cu_seqlens_k.given() ? integer_at(p.cu_seqlens_k, b + 1) - integer_at(p.cu_seqlens_k, b)
                               : p.s_kv;
    const std::int64_t used = integer_at(p.seqused_k, b);
    if (used >= 0 && used <= room) continue;
    return Status::invalid(at("seqused_k", b) + std::to_string(used) + " of " +
                           std::to_string(room) +
                           " keys; 0 to all of the sequence's keys are allowed; pass the number "
                           "in use");
  }
  return {};
}

}  // namespace onepass
