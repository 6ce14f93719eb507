#include "lang/evaluate.h"

namespace onepass::lang {

#include "lang/evaluate_run.inl"

template class Evaluator<float>;
template class Evaluator<double>;

}  // namespace onepass::lang
