#include "lang/machine.h"

#include <vector>

#include "lang/evaluate.h"

namespace onepass::lang {
namespace {

constexpr std::int64_t alignment = 64;
constexpr std::int32_t forever = 0x7fffffff;

std::int64_t aligned(std::int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

// Cuts pieces off the scratch; with a null base it only adds up their sizes.
class Cutter {
 public:
  explicit Cutter(void* base) : base_(static_cast<char*>(base)) {}
  template <class T>
  T* cut(std::int64_t count) {
    char* piece = base_ == nullptr ? nullptr : base_ + used_;
    used_ += aligned(count * static_cast<std::int64_t>(sizeof(T)));
    return reinterpret_cast<T*>(piece);
  }
  std::int64_t used() const { return used_; }

 private:
  char* base_;
  std::int64_t used_ = 0;
};

struct Tables {
  Machine* machine;
  Step* step;
  Scalar* scalar;
  Source* source;
  std::int32_t* order;
  std::int32_t* last_use;    // position in `order` of the last reader of a step's slot
  std::int32_t* free_slots;  // a stack
  std::int64_t bytes;
};

Tables cut_tables(const Program& program, void* scratch) {
  Cutter cutter(scratch);
  const auto nodes = static_cast<std::int64_t>(program.nodes.size());
  Tables tables{};
  tables.machine = cutter.cut<Machine>(1);
  tables.step = cutter.cut<Step>(nodes);
  tables.scalar = cutter.cut<Scalar>(nodes);
  tables.source = cutter.cut<Source>(static_cast<std::int64_t>(program.arrays.size()));
  tables.order = cutter.cut<std::int32_t>(nodes);
  tables.last_use = cutter.cut<std::int32_t>(nodes);
  tables.free_slots = cutter.cut<std::int32_t>(nodes);
  tables.bytes = cutter.used();
  return tables;
}

// Whether an integer step is linear in the key.
bool is_linear(const Step& step, const Step* steps) {
  const auto linear = [&](int i) { return steps[step.operand[i]].linear; };
  const auto fixed = [&](int i) { return !steps[step.operand[i]].vector; };
  if (step.type != Type::integer) return false;
  if (!step.vector || step.op == Op::name) return true;
  switch (step.op) {
    case Op::negate:
      return linear(0);
    case Op::add:
    case Op::subtract:
      return linear(0) && linear(1);
    case Op::multiply:
      return (fixed(0) && linear(1)) || (linear(0) && fixed(1));
    default:
      return false;
  }
}

void make_steps(const Program& program, Step* steps) {
  for (std::size_t i = 0; i < program.nodes.size(); ++i) {
    const Node& node = program.nodes[i];
    Step step;
    step.op = node.op;
    step.type = node.type;
    step.name = node.name;
    step.operands = node.operands;
    step.array = node.op == Op::load ? node.slot : -1;
    step.level = level_of(node, [&](std::int32_t at) { return steps[at].level; });
    for (int j = 0; j < node.operands; ++j) {
      step.operand[j] = node.operand[static_cast<std::size_t>(j)];
    }
    if (node.operands > 0) step.operand_type = steps[step.operand[0]].type;
    step.vector = (static_cast<int>(step.level) & 2) != 0;
    step.linear = is_linear(step, steps);
    step.direct = step.op == Op::load && step.vector;
    for (int j = 0; j < step.operands; ++j) step.direct &= steps[step.operand[j]].linear;
    steps[i] = step;
  }
}

void make_order(Machine& machine) {
  std::int32_t position = 0;
  for (int level = 0; level < level_count; ++level) {
    machine.level_begin[level] = position;
    for (std::int32_t i = 0; i < machine.steps; ++i) {
      if (static_cast<int>(machine.step[i].level) == level) machine.order[position++] = i;
    }
  }
  machine.level_begin[level_count] = position;
}

// Linear scan over the vector steps in the order they run. What the key steps leave for the pair
// steps lives forever; everything else hands its slot on after its last reader. A step's slot is
// never one of its operands' (their lanes may differ in width).
void assign_slots(Machine& machine, std::int32_t* last_use, std::int32_t* free_slots) {
  const std::int32_t pair_begin = machine.level_begin[static_cast<int>(Level::pair)];
  for (std::int32_t i = 0; i < machine.steps; ++i) last_use[i] = -1;
  for (std::int32_t at = 0; at < machine.steps; ++at) {
    const Step& step = machine.step[machine.order[at]];
    for (int j = 0; j < step.operands; ++j) {
      const bool kept = at >= pair_begin && machine.step[step.operand[j]].level == Level::keys;
      std::int32_t& last = last_use[step.operand[j]];
      last = kept || last == forever ? forever : at;
    }
  }
  last_use[machine.root] = forever;
  std::int32_t free_count = 0;
  for (std::int32_t at = machine.level_begin[static_cast<int>(Level::keys)]; at < machine.steps;
       ++at) {
    Step& step = machine.step[machine.order[at]];
    if (step.op == Op::name && step.name == Name::s) continue;
    step.slot = free_count > 0 ? free_slots[--free_count] : machine.slots++;
    for (int j = 0; j < step.operands; ++j) {
      const std::int32_t slot = machine.step[step.operand[j]].slot;
      if (slot < 0 || last_use[step.operand[j]] != at) continue;
      last_use[step.operand[j]] = -1;  // once, should an operand stand there twice
      free_slots[free_count++] = slot;
    }
  }
}

void lay_out(const Program& program, const Tables& tables) {
  Machine machine;
  machine.kind = program.kind;
  machine.steps = static_cast<std::int32_t>(program.nodes.size());
  machine.root = program.root;
  machine.step = tables.step;
  machine.scalar = tables.scalar;
  machine.source = tables.source;
  machine.order = tables.order;
  make_steps(program, machine.step);
  make_order(machine);
  assign_slots(machine, tables.last_use, tables.free_slots);
  *tables.machine = machine;
}

double rounded(double value, bool real64) { return real64 ? value : static_cast<float>(value); }

void set_values(const Program& program, Machine& machine) {
  for (std::size_t i = 0; i < program.nodes.size(); ++i) {
    const Node& node = program.nodes[i];
    Scalar value;
    if (node.op == Op::constant) value = {node.integer, rounded(node.real, machine.real64)};
    if (node.op == Op::parameter) {
      const Parameter& parameter = program.parameters[static_cast<std::size_t>(node.slot)];
      value = {parameter.integer, rounded(parameter.real, machine.real64)};
    }
    machine.scalar[i] = value;
  }
  for (std::size_t i = 0; i < program.arrays.size(); ++i) {
    const TensorView& view = program.arrays[i].view;
    Source source{view.data, view.dtype, view.rank};
    for (int dim = 0; dim < view.rank; ++dim) {
      source.shape[dim] = view.shape[static_cast<std::size_t>(dim)];
      source.strides[dim] = view.strides[static_cast<std::size_t>(dim)];
      source.empty |= source.shape[dim] == 0;
    }
    machine.source[i] = source;
  }
}

}  // namespace

std::int64_t evaluator_scratch_bytes(const Program& program) {
  const std::int64_t table_bytes = cut_tables(program, nullptr).bytes;
  std::vector<char> memory(static_cast<std::size_t>(table_bytes + alignment));
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  const Tables tables =
      cut_tables(program, memory.data() + (alignment - address % alignment) % alignment);
  lay_out(program, tables);
  return table_bytes + (tables.machine->slots + 2) * slot_bytes;
}

Machine* prepare_machine(const Program& program, const Scope& scope, bool int32, bool real64,
                         void* scratch) {
  const Tables tables = cut_tables(program, scratch);
  lay_out(program, tables);
  Machine& machine = *tables.machine;
  machine.scope = scope;
  machine.int32 = int32;
  machine.real64 = real64 && program.kind == Kind::score;
  machine.slot_memory = static_cast<char*>(scratch) + tables.bytes;
  set_values(program, machine);
  run_scalars(machine, Level::scope, 0);
  return &machine;
}

}  // namespace onepass::lang
