#include "lang/analysis.h"

#include <algorithm>

namespace onepass::lang::intervals {
namespace {

/// A read that uses both sides is scanned while that is cheap: a tile of a dense mask of bytes, or
/// a short stretch of anything else.
constexpr std::int64_t scanned_bytes = 128 * 1024;
constexpr std::int64_t scanned_wide_bytes = 2048;

bool is_comparison(Op op) {
  return op == Op::less || op == Op::less_equal || op == Op::equal || op == Op::not_equal;
}

/// Cases without literals are the quick ones: they come first.
void sort(Cases& cases) {
  std::partition(cases.at.begin(), cases.at.begin() + cases.count,
                 [](const Case& which) { return which.literals == 0; });
}

}  // namespace

Analysis::Analysis(const Program& mask, const Scope& scope, void* summaries)
    : program_(&mask),
      domain_(Zone::rectangle(0, scope.s_q, 0, scope.s_kv)),
      sides_(mask),
      constants_(mask, scope, sides_) {
  if (!sides_.analysed) return;

  char* at = static_cast<char*>(summaries);
  for (int t = 0; t < sides_.term_count; ++t) {
    const Term& term = sides_.terms[t];
    const std::int64_t length = term.side == varies_query ? scope.s_q : scope.s_kv;
    if (summaries != nullptr) {
      terms_[t].tree = BlockTree(at, length, term.compared);
      at += BlockTree::bytes(length, term.compared);
    }
    terms_[t].reader = TermReader(mask, scope, sides_, constants_, term);
  }

  Affine affine[max_nodes];
  for (int i = 0; i <= mask.root; ++i) {
    const Node& node = mask.nodes[i];
    affine[i] = {};
    if (node.type == Type::integer) {
      if (!(sides_.of[i] & both)) {
        affine[i] = affine_constant(constants_[i].integer, domain_);
      } else if (node.op == Op::name) {
        affine[i] = affine_name(node.name, scope, domain_);
      } else if (node.op != Op::load) {
        affine[i] =
            affine_apply(node.op, affine[node.operand[0]], affine[node.operand[1]], domain_);
      }
    }
    origin_[i] = origin_of(i, affine);
  }

  const Formula formula{mask, sides_, constants_, affine, domain_};
  visible_ = cases_of(formula, mask.root, true);
  hidden_ = cases_of(formula, mask.root, false);
  sort(visible_);
  sort(hidden_);
  find_needs(visible_, visible_needs_.data());
  find_needs(hidden_, hidden_needs_.data());
}

Analysis::Origin Analysis::origin_of(int i, const Affine* affine) const {
  const Node& node = program_->nodes[i];
  Origin origin{Source::apply, node.type, {everything(node.type)}};
  if (node.operands > 0)
    origin.operand_type = program_->nodes[node.operand[node.operands - 1]].type;
  const auto term = [&](int operand) { return sides_.term[node.operand[operand]]; };
  if (!(sides_.of[i] & both)) {
    origin.source = Source::constant;
    origin.constant = only(node.type, constants_[i]);
  } else if (sides_.term[i] >= 0) {
    origin.source = Source::term;
  } else if (node.type == Type::integer && affine[i].known) {
    origin.source = Source::affine;
    origin.affine = affine[i];
  } else if (node.op == Op::name) {
    origin.source = Source::constant;
  } else if (node.op == Op::load) {
    origin.source = Source::load;
  } else if (is_comparison(node.op) && origin.operand_type == Type::integer) {
    const Affine& a = affine[node.operand[0]];
    const Affine& b = affine[node.operand[1]];
    if (a.known && b.known) {
      origin.source = Source::difference;
      origin.affine = affine_difference(a, b);
    } else if ((node.op == Op::equal || node.op == Op::not_equal) && term(0) >= 0 && term(1) >= 0 &&
               sides_.terms[term(0)].side != sides_.terms[term(1)].side &&
               terms_[term(0)].tree.given() && terms_[term(1)].tree.given()) {
      origin.source = Source::shared;
    }
  }
  return origin;
}

/// Whose intervals decide each case: the subterms under its literals that vary with the tile.
void Analysis::find_needs(const Cases& cases, NodeSet* needs) const {
  for (int c = 0; c < cases.count; ++c) {
    needs[c] = NodeSet{};
    for (int l = 0; l < cases.at[c].literals; ++l) needs[c].insert(cases.at[c].literal[l].node);
    for (int i = program_->root; i >= 0; --i) {
      if (!needs[c].has(i)) continue;
      const Source source = origin_[i].source;
      if (source != Source::shared && source != Source::load && source != Source::apply) continue;
      for_each_operand(*program_, program_->nodes[i], [&](int operand) {
        if (origin_[operand].source != Source::constant) needs[c].insert(operand);
      });
    }
  }
}

TileKind Analysis::classify(const TileRange& tile) const {
  const Zone zone = Zone::rectangle(
      std::max<std::int64_t>(tile.row_begin, 0), std::min(tile.row_end, domain_.row_hi + 1),
      std::max<std::int64_t>(tile.col_begin, 0), std::min(tile.col_end, domain_.col_hi + 1));
  if (zone.empty()) return TileKind::skip;
  if (!sides_.analysed) return TileKind::partial;
  if (!any_occurs(visible_, visible_needs_.data(), zone)) return TileKind::skip;
  if (!any_occurs(hidden_, hidden_needs_.data(), zone)) return TileKind::full;
  return TileKind::partial;
}

// A zone without literals holds all visible pairs; where no case of the negation meets it, it holds
// no hidden one.
const Zone* Analysis::zone() const {
  if (!sides_.analysed || visible_.count != 1 || visible_.at[0].literals != 0) return nullptr;
  const Zone& zone = visible_.at[0].zone;
  for (int i = 0; i < hidden_.count; ++i) {
    if (!zone.meet(hidden_.at[i].zone).empty()) return nullptr;
  }
  return &zone;
}

bool Analysis::any_occurs(const Cases& cases, const NodeSet* needs, const Zone& tile) const {
  for (int i = 0; i < cases.count; ++i) {
    const Zone inside = tile.meet(cases.at[i].zone);
    if (inside.empty()) continue;
    if (cases.at[i].literals == 0) return true;
    if (occurs(cases.at[i], needs[i], inside.tight())) return true;
  }
  return false;
}

bool Analysis::occurs(const Case& which, const NodeSet& needs, const Zone& inside) const {
  Range ranges[max_nodes];
  needs.for_each([&](int i) { ranges[i] = range_of(i, inside, ranges); });
  for (int l = 0; l < which.literals; ++l) {
    const auto [node, value] = which.literal[l];
    const IntegerRange found = origin_[node].source == Source::constant
                                   ? origin_[node].constant.integer
                                   : ranges[node].integer;
    if (value ? found.hi == 0 : found.lo == 1) return false;
  }
  return true;
}

Range Analysis::range_of(int i, const Zone& inside, const Range* ranges) const {
  const Origin& origin = origin_[i];
  const Node& node = program_->nodes[i];
  Range operand[4];
  switch (origin.source) {
    case Source::constant:
      return origin.constant;
    case Source::affine:
      return {.integer = affine_range(origin.affine, inside)};
    case Source::difference:
      operand[0].integer = affine_range(origin.affine, inside);
      operand[1] = integers(0, 0);
      return apply(node.op, Type::boolean, Type::integer, operand);
    case Source::term: {
      const int t = sides_.term[i];
      if (sides_.terms[t].side == varies_query) {
        return terms_[t].range(constants_, inside.row_lo, inside.row_hi + 1);
      }
      return terms_[t].range(constants_, inside.col_lo, inside.col_hi + 1);
    }
    default:
      break;
  }
  const bool load = origin.source == Source::load;
  for (int j = 0; j < node.operands; ++j) {
    const int from = node.operand[j];
    if (load && !index_counts(*program_, node, j)) {
      operand[j] = integers(0, 0);
    } else {
      operand[j] = origin_[from].source == Source::constant ? origin_[from].constant : ranges[from];
    }
  }
  if (load) {
    const TensorView& view = program_->arrays[static_cast<std::size_t>(node.slot)].view;
    IntegerRange index[4];
    for (int j = 0; j < node.operands; ++j) index[j] = operand[j].integer;
    const bool bytes = size_bytes(view.dtype) == 1;
    return scan_box(view, index, bytes ? scanned_bytes : scanned_wide_bytes);
  }
  Range result = apply(node.op, node.type, origin.operand_type, operand);
  if (origin.source == Source::shared && result.integer.lo < result.integer.hi) {
    const TermQuery& a = terms_[sides_.term[node.operand[0]]];
    const TermQuery& b = terms_[sides_.term[node.operand[1]]];
    const bool a_rows = sides_.terms[sides_.term[node.operand[0]]].side == varies_query;
    const TermQuery& rows = a_rows ? a : b;
    const TermQuery& cols = a_rows ? b : a;
    if (!may_share(constants_, rows, inside.row_lo, inside.row_hi + 1, cols, inside.col_lo,
                   inside.col_hi + 1)) {
      result = node.op == Op::equal ? integers(0, 0) : integers(1, 1);
    }
  }
  return result;
}

}  // namespace onepass::lang::intervals
