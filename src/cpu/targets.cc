#include "cpu/targets.h"

namespace onepass::cpu {
namespace {

const Target* target_of(Isa isa) {
  switch (isa) {
    case Isa::baseline:
      return target_baseline();
    case Isa::neon:
      return target_neon();
    case Isa::avx2:
      return target_avx2();
    case Isa::avx512:
      return target_avx512();
    case Isa::avx512_bf16:
      return target_avx512_bf16();
  }
  return nullptr;
}

}  // namespace

const ForwardKernels* forward_kernels(Isa isa, DType dtype) {
  const Target* target = target_of(isa);
  if (!target) return nullptr;
  if (isa == Isa::avx512_bf16) {
    return dtype == DType::bfloat16 ? target->bfloat16_pairs : nullptr;
  }
  return dtype == DType::float64 ? target->float64 : target->float32;
}

const DecodeKernels* decode_kernels(Isa isa, DType dtype) {
  const Target* target = target_of(isa);
  if (!target) return nullptr;
  return dtype == DType::float64 ? target->decode_float64 : target->decode_float32;
}

const BackwardKernels* backward_kernels(Isa isa, DType dtype) {
  const Target* target = target_of(isa);
  if (!target) return nullptr;
  return dtype == DType::float64 ? target->backward_float64 : target->backward_float32;
}

}  // namespace onepass::cpu
