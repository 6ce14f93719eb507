// dropout_mask(): which pairs a call with this dropout keeps; docs/semantics.md has the contract.
#include "cpu/dropout_mask.h"
#include "core/check.h"
#include "cuda/dropout_mask.h"
#include "onepass/backward.h"

namespace onepass {
namespace {

Status check_mask(const TensorView& mask, const Dropout& dropout) {
  const char* dims = "(b, h_q, s_q, s_kv)";
  if (Status s = check::tensor("mask", mask, 4, dims, mask.device); !s.ok()) return s;
  if (Status s = check::dtype("mask", mask, {DType::boolean, DType::uint8}, "allocate it as bool");
      !s.ok()) {
    return s;
  }
  if (Status s = check::writable("mask", mask); !s.ok()) return s;
  if (Status s = check::memory("mask", mask); !s.ok()) return s;
  return check::dropout(dropout);
}

}  // namespace

void dropout_mask(const TensorView& mask, const Dropout& dropout, const Exec& exec) {
  if (Status s = check_mask(mask, dropout); !s.ok()) throw Error(s);
  if (mask.device.kind == Device::Kind::cpu) return cpu::dropout_mask(mask, dropout);
  if (Status s = cuda::dropout_mask(mask, dropout, exec.stream); !s.ok()) throw Error(s);
}

}  // namespace onepass
