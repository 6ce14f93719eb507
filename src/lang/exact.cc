#include "lang/exact.h"

#include "lang/integer.h"

namespace onepass::lang::intervals {
namespace {

/// Bounds on positions that keep sums of them from overflowing.
constexpr std::int64_t far = std::int64_t{1} << 61;

}  // namespace

Constants::Constants(const Program& program, const Scope& scope, const Sides& sides) {
  if (!sides.analysed) return;
  const Value unused = {.integer = 0};  // for dims that accept any index
  for (int i = 0; i <= program.root; ++i) {
    if (sides.of[i] & both) continue;
    const Node& node = program.nodes[i];
    if (node.op == Op::name) {
      values_[i] = {.integer = name_value(node.name, scope, 0, 0)};
      continue;
    }
    Lanes operand[4];
    for (int j = 0; j < node.operands; ++j) {
      const bool counts = node.op != Op::load || index_counts(program, node, j);
      operand[j] = {counts ? &values_[node.operand[j]] : &unused, 0};
    }
    apply(program, node, operand, 1, &values_[i]);
  }
}

TermReader::TermReader(const Program& program, const Scope& scope, const Sides& sides,
                       const Constants& constants, const Term& term)
    : program_(&program), scope_(scope), term_(term) {
  find_direct(sides, constants);
}

void TermReader::find_direct(const Sides& sides, const Constants& constants) {
  const Node& load = program_->nodes[term_.node];
  if (load.op != Op::load) return;
  array_ = &program_->arrays[static_cast<std::size_t>(load.slot)].view;
  bool moves = false;
  bool outside = false;
  for (int dim = 0; dim < load.operands; ++dim) {
    if (!index_counts(*program_, load, dim)) continue;
    const int operand = load.operand[dim];
    const std::int64_t size = array_->shape[dim];
    if (!(sides.of[operand] & both)) {
      const std::int64_t index = constants[operand].integer;
      outside |= index < 0 || index >= size;
      if (!outside) offset_ += index * array_->strides[dim];
      continue;
    }
    const Node& place = program_->nodes[operand];
    if (place.op != Op::name || moves) return;
    start_ = name_value(place.name, scope_, 0, 0);
    if (start_ < -far || start_ > far) return;
    moves = true;
    size_ = size;
    stride_ = array_->strides[dim];
  }
  if (outside) size_ = 0;
  direct_ = moves;
}

void TermReader::compute(const Constants& constants, std::int64_t begin, int count,
                         Value* out) const {
  Value values[max_nodes][lanes];
  const Value unused = {.integer = 0};  // for dims that accept any index
  term_.inside.for_each([&](int i) {
    const Node& node = program_->nodes[i];
    Value* to = i == term_.node ? out : values[i];
    if (node.op == Op::name) {
      const std::int64_t first = name_value(node.name, scope_, begin, begin);
      for (int lane = 0; lane < count; ++lane) to[lane].integer = wrapping_add(first, lane);
      return;
    }
    Lanes operand[4];
    for (int j = 0; j < node.operands; ++j) {
      const int from = node.operand[j];
      operand[j] = {&unused, 0};
      if (node.op == Op::load && !index_counts(*program_, node, j)) continue;
      operand[j] = term_.inside.has(from) ? Lanes{values[from], 1} : Lanes{constants.at(from), 0};
    }
    apply(*program_, node, operand, count, to);
  });
}

}  // namespace onepass::lang::intervals
