#include "lang/evaluate.h"

namespace onepass::lang {

constexpr bool fused_multiply_add = false;

#include "lang/evaluate_run.inl"

template class Evaluator<float>;
template class Evaluator<double>;

}  // namespace onepass::lang
