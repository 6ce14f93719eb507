#include "lang/term_query.h"

#include <algorithm>

namespace onepass::lang::intervals {
namespace {

struct Piece {
  Block block;
  const ValueSet* set;
};

/// Splits [begin, end) into a part before the first whole block, whole blocks, and a part after
/// them, and calls part(begin, end) and whole(first, last) with what is there, in order.
template <class Part, class Whole>
void split(const BlockTree& tree, std::int64_t begin, std::int64_t end, Part part, Whole whole) {
  const std::int64_t first = (begin + block_size - 1) / block_size;
  const std::int64_t last = end == tree.length() ? tree.count() : end / block_size;
  if (first >= last) {
    const std::int64_t middle = std::min(end, first * block_size);
    if (begin < middle) part(begin, middle);
    if (middle < end) part(middle, end);
    return;
  }
  if (begin < first * block_size) part(begin, first * block_size);
  whole(first, last);
  if (last * block_size < end) part(last * block_size, end);
}

bool disjoint(const Block& a, const Block& b) {
  return a.range.integer.lo > b.range.integer.hi || b.range.integer.lo > a.range.integer.hi ||
         (a.signature & b.signature) == 0;
}

/// The values in [begin, end), part of one block; `own` is room for their set.
Piece part_of(const Constants& constants, const TermQuery& query, std::int64_t begin,
              std::int64_t end, ValueSet& own) {
  const Block& leaf = query.tree.leaf(begin / block_size);
  if (leaf.range.integer.lo == leaf.range.integer.hi) {
    return {leaf, query.tree.set(begin / block_size)};
  }
  Collector collect(Type::integer, &own);
  query.reader.for_each(constants, begin, end, collect);
  return {collect.finish(), &own};
}

bool share(const Piece& a, const Piece& b) {
  return !disjoint(a.block, b.block) && share_value(a.block, *a.set, b.block, *b.set);
}

}  // namespace

Range TermQuery::range(const Constants& constants, std::int64_t begin, std::int64_t end) const {
  const Type type = reader.type();
  if (!tree.given()) return everything(type);
  Range all = nothing(type);
  split(
      tree, begin, end,
      [&](std::int64_t from, std::int64_t to) {
        const Range& leaf = tree.leaf(from / block_size).range;
        if (type != Type::real && leaf.integer.lo == leaf.integer.hi) {
          all = hull(type, all, leaf);
          return;
        }
        Collector collect(type, nullptr);
        reader.for_each(constants, from, to, collect);
        all = hull(type, all, collect.finish().range);
      },
      [&](std::int64_t first, std::int64_t last) {
        all = hull(type, all, tree.over(type, first, last).range);
      });
  return all;
}

bool may_share(const Constants& constants, const TermQuery& a, std::int64_t a_begin,
               std::int64_t a_end, const TermQuery& b, std::int64_t b_begin, std::int64_t b_end) {
  // The pieces of `a`: whole blocks and edges. Beyond `most` they are held together by their hull.
  constexpr int most = 16;
  Piece pieces[most];
  ValueSet edges[2];
  int count = 0, edge_count = 0;
  bool each = true;
  Block all;
  all.range = nothing(Type::integer);
  split(
      a.tree, a_begin, a_end,
      [&](std::int64_t from, std::int64_t to) {
        const Piece piece = part_of(constants, a, from, to, edges[edge_count++]);
        all = hull(Type::integer, all, piece.block);
        each = each && count < most;
        if (each) pieces[count++] = piece;
      },
      [&](std::int64_t first, std::int64_t last) {
        all = hull(Type::integer, all, a.tree.over(Type::integer, first, last));
        each = each && last - first <= most - count;
        for (std::int64_t i = first; each && i < last; ++i) {
          pieces[count++] = {a.tree.leaf(i), a.tree.set(i)};
        }
      });
  const auto meets = [&](const Piece& piece) {
    if (disjoint(all, piece.block)) return false;
    if (!each) return true;
    return std::any_of(pieces, pieces + count, [&](const Piece& p) { return share(p, piece); });
  };

  bool found = false;
  ValueSet edge;
  split(
      b.tree, b_begin, b_end,
      [&](std::int64_t from, std::int64_t to) {
        if (found) return;
        found = meets(part_of(constants, b, from, to, edge));
      },
      [&](std::int64_t first, std::int64_t last) {
        found = found || b.tree.any(
                             first, last, [&](const Block& block) { return !disjoint(all, block); },
                             [&](std::int64_t i) {
                               return meets({b.tree.leaf(i), b.tree.set(i)});
                             });
      });
  return found;
}

}  // namespace onepass::lang::intervals
