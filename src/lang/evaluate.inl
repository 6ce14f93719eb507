// The vector evaluator for one instruction set: include inside that set's namespace and target
// region, after "lang/machine.h". Nothing here calls an inline function of the standard library or
// of ours outside this namespace, so no copy compiled for one instruction set can be linked into
// another.
#include "lang/evaluate_class.inl"

#include "lang/evaluate_run.inl"
