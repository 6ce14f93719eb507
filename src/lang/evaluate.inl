// The vector evaluator for one instruction set: include inside that set's namespace and target
// region, after "lang/machine.h". Nothing here calls an inline function of the standard library or
// of ours outside this namespace, so no copy compiled for one instruction set can be linked into
// another.
using lang::Kind;
using lang::lane_block;
using lang::Level;
using lang::Machine;
using lang::max_keys;
using lang::Name;
using lang::Op;
using lang::prepare_machine;
using lang::Program;
using lang::run_scalars;
using lang::Scalar;
using lang::Scope;
using lang::slot_bytes;
using lang::Source;
using lang::Step;
using lang::Type;

#include "lang/evaluate_class.inl"

#include "lang/evaluate_run.inl"
