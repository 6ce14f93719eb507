#include "lang/derivative.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lang/builder.h"
#include "lang/compile.h"

namespace onepass::lang {
namespace {

constexpr std::int32_t none = -1;

// A derivative: `guard ? value : 0`. Zeros of branches not chosen are never multiplied: a product
// or quotient touches `value` alone, so what the guard hides cannot turn into NaN.
struct Change {
  std::int32_t value = none;  // none = zero everywhere
  std::int32_t guard = none;  // none = everywhere
  bool zero() const { return value == none; }
};

// Forward differentiation of every node with respect to one node.
class Differentiator {
 public:
  explicit Differentiator(const Program& score)
      : builder_(score), nodes_(score.nodes.size()), root_(score.root) {}

  /// d root / d (node `variable`), or none when it is zero everywhere.
  std::int32_t with_respect_to(std::int32_t variable) {
    changes_.assign(nodes_, {});
    for (std::size_t i = 0; i < nodes_; ++i) {
      const auto node = static_cast<std::int32_t>(i);
      changes_[i] = node == variable ? Change{builder_.constant(1.0), none} : rule(node);
    }
    const Change& out = changes_[static_cast<std::size_t>(root_)];
    return out.zero() ? none : whole(out);
  }

  std::int32_t zero() { return builder_.constant(0.0); }

  /// Where a load lies in its array: its row-major number as a float, or -1 outside.
  std::int32_t place(const Node& load, const TensorView& array) {
    std::int32_t number = builder_.constant(std::int64_t{0});
    std::int32_t inside = none;
    std::int64_t stride = 1;
    for (auto dim = static_cast<std::size_t>(array.rank); dim-- > 0;) {
      const std::int64_t size = array.shape[dim];
      if (size == 1) continue;  // any index reads its only element
      const std::int32_t index = load.operand[dim];
      const std::int32_t low =
          builder_.binary(Op::less_equal, builder_.constant(std::int64_t{0}), index);
      const std::int32_t high = builder_.binary(Op::less, index, builder_.constant(size));
      inside = both(both(inside, low), high);
      number = builder_.binary(Op::add, number,
                               builder_.binary(Op::multiply, index, builder_.constant(stride)));
      stride *= size;
    }
    if (inside != none) {
      number = builder_.select(inside, number, builder_.constant(std::int64_t{-1}));
    }
    return builder_.as_real(number);
  }

  Program finish(std::int32_t root) const {
    Program out = builder_.finish(root);
    out.text = to_text(out);
    return out;
  }

 private:
  const Change& of(std::int32_t node) const { return changes_[static_cast<std::size_t>(node)]; }

  std::int32_t whole(const Change& change) {
    if (change.zero()) return zero();
    if (change.guard == none) return change.value;
    return builder_.select(change.guard, change.value, zero());
  }

  std::int32_t both(std::int32_t guard, std::int32_t other) {
    if (guard == none) return other;
    return other == none ? guard : builder_.binary(Op::logical_and, guard, other);
  }

  bool is_value(std::int32_t node) const {
    const Op op = builder_.at(node).op;
    return op == Op::constant || op == Op::parameter;
  }

  bool is_minus_one(std::int32_t node) const {
    return builder_.at(node).op == Op::constant && builder_.at(node).real == -1.0;
  }

  // Products keep one known factor, in front.
  std::int32_t product(std::int32_t a, std::int32_t b) {
    if (is_value(b) && !is_value(a)) std::swap(a, b);
    if (is_minus_one(a)) return builder_.unary(Op::negate, b);
    const Node inner = builder_.at(b);
    if (is_value(a) && inner.op == Op::multiply && is_value(inner.operand[0])) {
      return product(builder_.binary(Op::multiply, a, inner.operand[0]), inner.operand[1]);
    }
    return builder_.binary(Op::multiply, a, b);
  }

  // The largest |value| of a node, as far as its form says it; infinity where it does not.
  double bound(std::int32_t node) {
    const auto wanted = static_cast<std::size_t>(node);
    while (bounds_.size() <= wanted) {
      bounds_.push_back(bound_by_operands(static_cast<std::int32_t>(bounds_.size())));
    }
    return bounds_[wanted];
  }

  double bound_by_operands(std::int32_t which) const {
    const Node& node = builder_.at(which);
    const auto of_operand = [&](std::size_t i) {
      return bounds_[static_cast<std::size_t>(node.operand[i])];
    };
    switch (node.op) {
      case Op::constant:
        return std::fabs(node.real);
      case Op::parameter:
        return std::fabs(builder_.parameter_at(which).real);
      case Op::to_real:
        return 0x1p63;
      case Op::hyperbolic_tangent:
        return 1.0;
      case Op::negate:
      case Op::absolute:
        return of_operand(0);
      case Op::add:
      case Op::subtract:
        return of_operand(0) + of_operand(1);
      case Op::multiply:
        return of_operand(0) * of_operand(1);
      case Op::select:
        return std::max(of_operand(1), of_operand(2));
      default:
        return std::numeric_limits<double>::infinity();
    }
  }

  // Not so of NaN either. Float32 readers take what is beyond their range for infinite.
  bool surely_finite(std::int32_t node) { return bound(node) <= std::numeric_limits<float>::max(); }

  bool surely_nonzero(std::int32_t node) {
    const Node& known = builder_.at(builder_.binary(Op::not_equal, node, zero()));
    return known.op == Op::constant && known.integer != 0;
  }

  // `change` where `node` is not 0.
  Change where_nonzero(std::int32_t node, const Change& change) {
    if (surely_nonzero(node)) return change;
    const std::int32_t nonzero = builder_.binary(Op::not_equal, node, zero());
    return {change.value, both(change.guard, nonzero)};
  }

  // 0 wins over infinity and NaN: beside a slope of 0 nothing moves, however steep the other is.
  Change times(std::int32_t factor, const Change& change) {
    if (change.zero()) return {};
    Change out{product(factor, change.value), change.guard};
    if (!surely_finite(change.value)) out = where_nonzero(factor, out);
    if (!surely_finite(factor)) out = where_nonzero(change.value, out);
    return out;
  }

  // What does not move adds nothing, beside a divisor of 0 too.
  Change over(const Change& change, std::int32_t divisor) {
    if (change.zero()) return {};
    const Change out{builder_.binary(Op::divide, change.value, divisor), change.guard};
    const bool safe = is_value(divisor) && surely_nonzero(divisor);
    return safe ? out : where_nonzero(change.value, out);
  }

  Change minus(const Change& change) {
    if (change.zero()) return {};
    return {builder_.unary(Op::negate, change.value), change.guard};
  }

  Change plus(const Change& a, const Change& b, Op op = Op::add) {
    if (b.zero()) return a;
    if (a.zero()) return op == Op::add ? b : minus(b);
    if (a.guard == b.guard) return {builder_.binary(op, a.value, b.value), a.guard};
    const std::int32_t sum = builder_.binary(op, whole(a), whole(b));
    if (a.guard == none || b.guard == none) return {sum, none};
    return {sum, builder_.binary(Op::logical_or, a.guard, b.guard)};
  }

  Change select(std::int32_t condition, const Change& yes, const Change& no) {
    if (yes.zero() && no.zero()) return {};
    if (no.zero()) return {yes.value, both(condition, yes.guard)};
    if (yes.zero()) {
      return {no.value, both(builder_.unary(Op::logical_not, condition), no.guard)};
    }
    const std::int32_t value = builder_.select(condition, yes.value, no.value);
    if (yes.guard == none && no.guard == none) return {value, none};
    const std::int32_t always = builder_.constant(true);
    return {value, builder_.select(condition, yes.guard == none ? always : yes.guard,
                                   no.guard == none ? always : no.guard)};
  }

  // d|x| is 0 at 0.
  Change absolute(std::int32_t x) {
    const Change change = of(x);
    if (change.zero()) return {};
    const std::int32_t negative = builder_.binary(Op::less, x, zero());
    const std::int32_t nonzero = builder_.binary(Op::not_equal, x, zero());
    const Change sign = select(negative, minus(change), change);
    return {sign.value, both(sign.guard, nonzero)};
  }

  Change rule(std::int32_t which) {
    const Node node = builder_.at(which);
    if (node.type != Type::real) return {};
    const std::int32_t a = node.operand[0];
    const std::int32_t b = node.operand[1];
    switch (node.op) {
      case Op::negate:
        return minus(of(a));
      case Op::add:
        return plus(of(a), of(b));
      case Op::subtract:
        return plus(of(a), of(b), Op::subtract);
      case Op::multiply:
        return plus(times(b, of(a)), times(a, of(b)));
      case Op::divide:
        return over(plus(of(a), times(which, of(b)), Op::subtract), b);
      case Op::modulo: {
        // a - b * (a // b), and a // b does not change.
        if (of(b).zero()) return of(a);
        const std::int32_t turns = builder_.binary(Op::floor_divide, a, b);
        return plus(of(a), times(turns, of(b)), Op::subtract);
      }
      case Op::select:
        return select(a, of(b), of(node.operand[2]));
      case Op::absolute:
        return absolute(a);
      case Op::minimum:
        if (of(a).zero() && of(b).zero()) return {};
        return select(builder_.binary(Op::less, b, a), of(b), of(a));
      case Op::maximum:
        if (of(a).zero() && of(b).zero()) return {};
        return select(builder_.binary(Op::less, a, b), of(b), of(a));
      case Op::square_root:
        return over(times(builder_.constant(0.5), of(a)), which);
      case Op::exponential:
        return times(which, of(a));
      case Op::logarithm:
        return over(of(a), a);
      case Op::hyperbolic_tangent: {
        if (of(a).zero()) return {};
        const std::int32_t square = builder_.binary(Op::multiply, which, which);
        const std::int32_t one = builder_.constant(1.0);
        return times(builder_.binary(Op::subtract, one, square), of(a));
      }
      default:
        return {};  // names, loads, values, floor, //: constant between their steps
    }
  }

  Builder builder_;
  std::size_t nodes_;  // of the score; the builder appends the derivative's
  std::int32_t root_;
  std::vector<Change> changes_;
  std::vector<double> bounds_;  // of the first nodes, as many as were asked for
};

}  // namespace

Program derivative_logit(const Program& score) {
  Differentiator differentiator(score);
  std::int32_t root = none;
  for (std::size_t i = 0; i < score.nodes.size(); ++i) {
    const Node& node = score.nodes[i];
    if (node.op != Op::name || node.name != Name::s) continue;
    root = differentiator.with_respect_to(static_cast<std::int32_t>(i));
  }
  return differentiator.finish(root == none ? differentiator.zero() : root);
}

std::vector<ArrayDerivative> derivative_arrays(const Program& score) {
  std::vector<ArrayDerivative> out;
  for (std::size_t i = 0; i < score.nodes.size(); ++i) {
    const Node& node = score.nodes[i];
    if (node.op != Op::load || node.type != Type::real) continue;
    Differentiator differentiator(score);
    const std::int32_t root = differentiator.with_respect_to(static_cast<std::int32_t>(i));
    if (root == none) continue;
    ArrayDerivative one;
    one.array = node.slot;
    one.factor = differentiator.finish(root);
    for (std::size_t dim = 0; dim < node.operands; ++dim) {
      one.index.push_back(differentiator.finish(node.operand[dim]));
    }
    const TensorView& array = score.arrays[static_cast<std::size_t>(node.slot)].view;
    one.place = differentiator.finish(differentiator.place(node, array));
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace onepass::lang
