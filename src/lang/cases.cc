#include "lang/cases.h"

#include <algorithm>

#include "lang/integer.h"

namespace onepass::lang::intervals {
namespace {

/// The greatest, or the least, of one or two affine terms.
struct Extreme {
  int count = 0;
  bool greatest = false;
  std::array<Affine, 2> of;
};

class Builder {
 public:
  explicit Builder(const Formula& formula) : formula_(formula) {}

  Cases cases(int i, bool value, int depth) {
    const Node& node = formula_.program.nodes[i];
    if (!(formula_.sides.of[i] & both)) {
      return (formula_.constants[i].integer != 0) == value ? always() : Cases{};
    }
    // Shared subterms are expanded at each use: a bound on the work keeps that in hand.
    if (formula_.sides.term[i] >= 0 || depth > 24 || ++work_ > 512) return literal(i, value);
    switch (node.op) {
      case Op::logical_not:
        return cases(node.operand[0], !value, depth + 1);
      case Op::logical_and:
      case Op::logical_or: {
        const Cases a = cases(node.operand[0], value, depth + 1);
        const Cases b = cases(node.operand[1], value, depth + 1);
        return join((node.op == Op::logical_and) == value, a, b, i, value);
      }
      case Op::select: {
        const Cases a = join(true, cases(node.operand[0], true, depth + 1),
                             cases(node.operand[1], value, depth + 1), i, value);
        const Cases b = join(true, cases(node.operand[0], false, depth + 1),
                             cases(node.operand[2], value, depth + 1), i, value);
        return join(false, a, b, i, value);
      }
      case Op::less:
      case Op::less_equal:
      case Op::equal:
      case Op::not_equal:
        return comparison(i, value);
      default:
        return literal(i, value);
    }
  }

 private:
  Cases always() const { return zone(formula_.domain); }

  Cases zone(const Zone& bounds) const {
    Cases result;
    const Zone inside = bounds.meet(formula_.domain);
    if (inside.empty()) return result;
    result.count = 1;
    result.at[0].zone = inside.tight();
    return result;
  }

  Cases literal(int i, bool value) const {
    Cases result = always();
    if (result.count == 0) return result;
    result.at[0].literals = 1;
    result.at[0].literal[0] = {static_cast<std::int16_t>(i), value};
    return result;
  }

  /// The intersection, or the union, of both. Where that is too long: the node as a literal.
  Cases join(bool intersection, const Cases& a, const Cases& b, int i, bool value) {
    Cases result;
    bool fits = true;
    if (intersection) {
      for (int x = 0; x < a.count; ++x) {
        for (int y = 0; y < b.count; ++y) fits = fits && append(result, a.at[x], b.at[y]);
      }
    } else {
      for (const Cases* list : {&a, &b}) {
        for (int x = 0; x < list->count; ++x) fits = fits && append(result, list->at[x]);
      }
    }
    return fits ? result : literal(i, value);
  }

  static bool append(Cases& list, const Case& added) {
    if (list.count == Cases::most) return false;
    list.at[list.count++] = added;
    return true;
  }

  /// Appends the pairs in both.
  static bool append(Cases& list, const Case& a, const Case& b) {
    Case meet = a;
    meet.zone = a.zone.meet(b.zone);
    if (meet.zone.empty()) return true;
    meet.zone = meet.zone.tight();
    for (int y = 0; y < b.literals; ++y) {
      bool known = false;
      for (int x = 0; x < a.literals; ++x) {
        if (a.literal[x].node != b.literal[y].node) continue;
        if (a.literal[x].value != b.literal[y].value) return true;  // a contradiction: no pair
        known = true;
      }
      // A literal that finds no room is left out: the case only grows.
      if (!known && meet.literals < Case::max_literals) {
        meet.literal[meet.literals++] = b.literal[y];
      }
    }
    return append(list, meet);
  }

  Cases comparison(int i, bool value) {
    const Node& node = formula_.program.nodes[i];
    Extreme a, b;
    if (!extreme(node.operand[0], a) || !extreme(node.operand[1], b)) return literal(i, value);
    general_ = false;
    Cases result;
    if (node.op == Op::less || node.op == Op::less_equal) {
      const bool strict = (node.op == Op::less) == value;
      result = value ? below(a, b, strict, i, value) : below(b, a, strict, i, value);
    } else {
      const bool same = (node.op == Op::equal) == value;
      const Cases ab = below(a, b, !same, i, value);
      const Cases ba = below(b, a, !same, i, value);
      result = join(same, ab, ba, i, value);
    }
    return general_ ? literal(i, value) : result;
  }

  /// The node as an extreme of affine terms, if it is one.
  bool extreme(int i, Extreme& result) const {
    const Node& node = formula_.program.nodes[i];
    if (node.type != Type::integer) return false;
    if (formula_.affine[i].known) {
      result = {1, false, {formula_.affine[i]}};
      return true;
    }
    if (node.op != Op::absolute && node.op != Op::minimum && node.op != Op::maximum) return false;
    const Affine& a = formula_.affine[node.operand[0]];
    if (node.op == Op::absolute) {
      result = {2, true, {a, affine_difference({0, 0, 0, true}, a)}};
    } else {
      result = {2, node.op == Op::maximum, {a, formula_.affine[node.operand[1]]}};
    }
    return result.of[0].known && result.of[1].known;
  }

  /// The cases in which a <= b, or a < b. A greatest term on the left, and a least on the right,
  /// asks it of all; else one is enough.
  Cases below(const Extreme& a, const Extreme& b, bool strict, int i, bool value) {
    Cases result;
    for (int x = 0; x < a.count; ++x) {
      Cases line;
      for (int y = 0; y < b.count; ++y) {
        const Cases one = half_plane(affine_difference(a.of[x], b.of[y]), strict);
        line = y == 0 ? one : join(!b.greatest, line, one, i, value);
      }
      result = x == 0 ? line : join(a.greatest, result, line, i, value);
    }
    return result;
  }

  /// The pairs at which the term is at most 0, or below it.
  Cases half_plane(const Affine& term, bool strict) {
    const std::int64_t limit = -term.constant - (strict ? 1 : 0);  // of the moving part
    if (term.row == 0 && term.col == 0) return limit >= 0 ? always() : Cases{};
    Zone bounds = formula_.domain;
    if (term.row == 0) {
      bound(term.col, limit, bounds.col_lo, bounds.col_hi);
    } else if (term.col == 0) {
      bound(term.row, limit, bounds.row_lo, bounds.row_hi);
    } else if (term.row == -term.col) {
      bound(term.col, limit, bounds.diff_lo, bounds.diff_hi);
    } else {
      general_ = true;
    }
    return zone(bounds);
  }

  /// factor * x <= limit as a bound on x.
  static void bound(std::int64_t factor, std::int64_t limit, std::int64_t& lo, std::int64_t& hi) {
    if (factor > 0) {
      hi = std::min(hi, floor_quotient(limit, factor));
    } else {
      lo = std::max(lo, -floor_quotient(limit, -factor));
    }
  }

  const Formula& formula_;
  int work_ = 0;
  bool general_ = false;  // the comparison has a half plane that is not a zone's
};

}  // namespace

Cases cases_of(const Formula& formula, int node, bool value) {
  return Builder(formula).cases(node, value, 0);
}

}  // namespace onepass::lang::intervals
