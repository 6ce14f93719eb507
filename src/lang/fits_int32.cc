#include <algorithm>
#include <limits>

#include "lang/affine.h"
#include "lang/elements.h"
#include "lang/interval.h"
#include "lang/range.h"
#include "lang/sides.h"
#include "lang/zone.h"

namespace onepass::lang {

using namespace intervals;

namespace {

bool fits(__int128 lo, __int128 hi) {
  return lo >= std::numeric_limits<std::int32_t>::min() &&
         hi <= std::numeric_limits<std::int32_t>::max();
}

bool fits(const IntegerRange& range) { return fits(range.lo, range.hi); }

/// Whether `x // y` and `x % y` can be had by way of y * (x // y).
bool product_fits(const IntegerRange& x, const IntegerRange& y) {
  const __int128 margin = std::max<__int128>(y.lo < 0 ? -static_cast<__int128>(y.lo) : y.lo,
                                             y.hi < 0 ? -static_cast<__int128>(y.hi) : y.hi);
  return fits(x.lo - margin, x.hi + margin);
}

}  // namespace

bool fits_int32(const Program& program, const Scope& scope) {
  const Zone domain = Zone::rectangle(0, scope.s_q, 0, scope.s_kv);
  if (domain.empty()) return true;
  const int count = static_cast<int>(program.nodes.size());
  if (count > max_nodes) return false;

  const std::int64_t scanned_bytes = 8 * (64 + scope.s_q + scope.s_kv);
  Affine affine[max_nodes];
  Range range[max_nodes];
  for (int i = 0; i < count; ++i) {
    const Node& node = program.nodes[i];
    affine[i] = {};
    Range operand[4] = {};
    for (int j = 0; j < node.operands; ++j) operand[j] = range[node.operand[j]];
    const Type operand_type =
        node.operands > 0 ? program.nodes[node.operand[node.operands - 1]].type : node.type;

    // Scores may compute in float64: nothing is said of their reals.
    range[i] = everything(node.type);
    switch (node.op) {
      case Op::constant:
        if (node.type != Type::real) range[i] = integers(node.integer, node.integer);
        break;
      case Op::parameter:
        if (node.type != Type::real) {
          const std::int64_t value =
              program.parameters[static_cast<std::size_t>(node.slot)].integer;
          range[i] = integers(value, value);
        }
        break;
      case Op::name:
        affine[i] = affine_name(node.name, scope, domain);
        break;
      case Op::load: {
        const TensorView& view = program.arrays[static_cast<std::size_t>(node.slot)].view;
        IntegerRange index[4];
        for (int j = 0; j < node.operands; ++j) index[j] = operand[j].integer;
        if (node.type == Type::integer) {
          range[i] = any_element(view.dtype);
          if (!fits(range[i].integer)) range[i] = scan_box(view, index, scanned_bytes);
        }
        break;
      }
      default:
        if (node.type == Type::real || (node.type == Type::boolean && operand_type == Type::real)) {
          break;
        }
        range[i] = apply(node.op, node.type, operand_type, operand);
        if (node.type == Type::integer) {
          affine[i] =
              affine_apply(node.op, affine[node.operand[0]], affine[node.operand[1]], domain);
        }
        if ((node.op == Op::floor_divide || node.op == Op::modulo) &&
            !product_fits(operand[0].integer, operand[1].integer)) {
          return false;
        }
    }
    if (node.type != Type::integer) continue;
    if (node.op == Op::constant || node.op == Op::parameter) {
      affine[i] = affine_constant(range[i].integer.lo, domain);
    }
    if (affine[i].known) range[i].integer = affine_range(affine[i], domain);
    if (!fits(range[i].integer)) return false;
  }
  return true;
}

}  // namespace onepass::lang
