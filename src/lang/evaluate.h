// Vector evaluator of masks and scores: one row of keys at a time. This is the copy for the
// baseline instruction set; kernels compile their own from evaluate.inl.
#pragma once

#include <cstdint>

#include "lang/machine.h"
#include "lang/program.h"

namespace onepass::lang {

/// Exact bytes of scratch that an evaluator of this program needs.
std::int64_t evaluator_scratch_bytes(const Program& program);

#include "lang/evaluate_class.inl"

extern template class Evaluator<float>;
extern template class Evaluator<double>;

}  // namespace onepass::lang
