// Which subterms change with the query, which with the key, and which of them are summarised.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "lang/program.h"

namespace onepass::lang::intervals {

/// Programs of more nodes than this are not analysed: no tile of theirs is decided.
inline constexpr int max_nodes = 256;
/// One-sided subterms that are summarised; any others are only known by their type.
inline constexpr int max_terms = 16;

/// Both sides of a pair.
inline constexpr std::uint8_t both = varies_query | varies_key;

/// A set of nodes, visited in program order.
class NodeSet {
 public:
  void insert(int node) { words_[node >> 6] |= std::uint64_t{1} << (node & 63); }
  void insert(const NodeSet& other) {
    for (int i = 0; i < 4; ++i) words_[i] |= other.words_[i];
  }
  bool has(int node) const { return (words_[node >> 6] >> (node & 63)) & 1; }

  template <class F>
  void for_each(F f) const {
    for (int i = 0; i < 4; ++i) {
      for (std::uint64_t rest = words_[i]; rest != 0; rest &= rest - 1) {
        f(i * 64 + std::countr_zero(rest));
      }
    }
  }

 private:
  std::array<std::uint64_t, max_nodes / 64> words_{};
};

/// A subterm of one side that reads an array at a place which changes along that side.
struct Term {
  std::int32_t node = -1;
  Varies side = varies_query;  // varies_query or varies_key
  bool compared = false;       // an integer under == or != with a term of the other side
  NodeSet inside;              // the nodes of the subterm that change along the side
};

struct Sides {
  explicit Sides(const Program& program);

  bool analysed = false;  // at most max_nodes nodes, and every array can be read from the host
  int term_count = 0;
  bool per_head = false;                    // a term changes with h or h_kv
  std::array<std::uint8_t, max_nodes> of;   // varies_query, varies_key, varies_head
  std::array<std::int8_t, max_nodes> term;  // index in `terms`, or -1
  std::array<Term, max_terms> terms;
  NodeSet needed;  // nodes that the interval reader looks at: a term hides what is inside it
};

/// Whether the operand for this dim of a load matters: a dim of size 1 accepts any index.
inline bool index_counts(const Program& program, const Node& load, int dim) {
  return program.arrays[static_cast<std::size_t>(load.slot)].view.shape[dim] != 1;
}

/// Calls f(operand) for the operands that a node's value depends on.
template <class F>
void for_each_operand(const Program& program, const Node& node, F f) {
  for (int i = 0; i < node.operands; ++i) {
    if (node.op != Op::load || index_counts(program, node, i)) f(int{node.operand[i]});
  }
}

}  // namespace onepass::lang::intervals
