#include "lang/sides.h"

namespace onepass::lang::intervals {
namespace {

std::uint8_t sides_of(Name name) {
  switch (name) {
    case Name::q:
    case Name::row:
    case Name::token_q:
      return varies_query;
    case Name::k:
    case Name::col:
    case Name::token_k:
      return varies_key;
    case Name::h:
    case Name::h_kv:
      return varies_head;
    case Name::s:
      return both;
    default:
      return 0;
  }
}

bool one_sided(std::uint8_t sides) {
  return (sides & both) == varies_query || (sides & both) == varies_key;
}

bool readable(const TensorView& view) {
  return view.device.kind == Device::Kind::cpu && (view.data != nullptr || view.elements() == 0);
}

NodeSet subterm(const Program& program, const Sides& sides, int node) {
  NodeSet inside;
  inside.insert(node);
  for (int i = node; i >= 0; --i) {
    if (!inside.has(i)) continue;
    for_each_operand(program, program.nodes[i], [&](int operand) {
      if (sides.of[operand] & both) inside.insert(operand);
    });
  }
  return inside;
}

}  // namespace

Sides::Sides(const Program& program) {
  const int count = static_cast<int>(program.nodes.size());
  analysed = count <= max_nodes && program.root >= 0;
  for (const Array& array : program.arrays) analysed = analysed && readable(array.view);
  if (!analysed) return;

  NodeSet reads;  // reads an array at a place that changes along the tile
  for (int i = 0; i < count; ++i) {
    const Node& node = program.nodes[i];
    of[i] = node.op == Op::name ? sides_of(node.name) : 0;
    term[i] = -1;
    for_each_operand(program, node, [&](int operand) {
      of[i] |= of[operand];
      if (reads.has(operand)) reads.insert(i);
    });
    if (node.op == Op::load && (of[i] & both)) reads.insert(i);
  }

  needed.insert(program.root);
  for (int i = program.root; i >= 0; --i) {
    if (!needed.has(i) || !(of[i] & both)) continue;
    if (one_sided(of[i]) && reads.has(i)) {
      if (term_count == max_terms) continue;
      term[i] = static_cast<std::int8_t>(term_count);
      terms[term_count++] = {i, of[i] & varies_query ? varies_query : varies_key, false,
                             subterm(program, *this, i)};
      per_head |= (of[i] & varies_head) != 0;
      continue;
    }
    for_each_operand(program, program.nodes[i], [&](int operand) { needed.insert(operand); });
  }

  needed.for_each([&](int i) {
    const Node& node = program.nodes[i];
    if ((node.op != Op::equal && node.op != Op::not_equal) || term[i] >= 0) return;
    const int a = node.operand[0];
    const int b = node.operand[1];
    if (program.nodes[a].type != Type::integer || term[a] < 0 || term[b] < 0) return;
    if (terms[term[a]].side == terms[term[b]].side) return;
    terms[term[a]].compared = terms[term[b]].compared = true;
  });
}

}  // namespace onepass::lang::intervals
