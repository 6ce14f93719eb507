// A program laid out for the vector evaluator: plain data in the caller's scratch, so that the code
// compiled per instruction set (evaluate.inl) touches nothing of the standard library.
#pragma once

#include <cstdint>

#include "lang/level.h"
#include "lang/program.h"
#include "onepass/tensor.h"

namespace onepass::lang {

/// Most keys of one begin_keys.
inline constexpr int max_keys = 512;
/// Loops run over whole blocks of lanes; slots have room for that.
inline constexpr int lane_block = 64;
inline constexpr std::int64_t slot_bytes = (max_keys + lane_block) * 8;

/// One node of the program. Plain arrays: see above.
struct Step {
  Op op = Op::constant;
  Type type = Type::boolean;
  Type operand_type = Type::boolean;  // of the first operand
  Level level = Level::scope;
  Name name = Name::q;
  std::uint8_t operands = 0;
  bool vector = false;      // varies with the key: lives in a slot, else in `scalar`
  bool linear = false;      // an integer equal to a + b * lane
  bool direct = false;      // a vector load whose indices are all linear
  std::int32_t slot = -1;   // -1 for the logit, which lies where the caller says
  std::int32_t array = -1;  // Op::load
  std::int32_t operand[4] = {};
};

/// Value of a step that does not vary with the key. Float32 values are held exactly.
struct Scalar {
  std::int64_t integer = 0;  // Type::boolean and Type::integer
  double real = 0.0;         // Type::real
};

/// An array argument.
struct Source {
  const void* data = nullptr;
  DType dtype = DType::float32;
  int rank = 0;
  bool empty = false;  // a dim is 0: every index is out of range
  std::int64_t shape[max_rank] = {};
  std::int64_t strides[max_rank] = {};
};

struct Machine {
  Scope scope;
  Kind kind = Kind::mask;
  bool int32 = false;   // integer lanes are 32 bits
  bool real64 = false;  // real lanes are 64 bits; never for a mask
  std::int32_t steps = 0;
  std::int32_t root = -1;
  std::int32_t slots = 0;  // two more follow, for rows whose length is not a multiple of lane_block
  Step* step = nullptr;
  Scalar* scalar = nullptr;
  Source* source = nullptr;
  std::int32_t* order = nullptr;  // the steps by level, each level in program order
  std::int32_t level_begin[level_count + 1] = {};
  char* slot_memory = nullptr;
  std::int64_t col_begin = 0;
};

/// Lays the program out in `scratch` (evaluator_scratch_bytes, 64-byte aligned) and computes what
/// does not vary inside the scope. `real64` is ignored for masks. Allocates nothing.
Machine* prepare_machine(const Program& program, const Scope& scope, bool int32, bool real64,
                         void* scratch);

/// Computes the scalar steps of Level::scope, or those of Level::row for this row.
void run_scalars(Machine& machine, Level level, std::int64_t row);

}  // namespace onepass::lang
