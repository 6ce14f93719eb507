// Conditions that are linear in the key, as limits on the column.
#include "lang/cuda_text_writer.h"

namespace onepass::lang {

// Shared subterms are written out, so their number is bounded.
constexpr std::size_t max_terms = 16;

// Takes the mask's conjunction apart. With 64-bit integers sums may wrap: no comparison is a limit.
void CudaTextWriter::split_conditions(std::int32_t i) {
  const Node& at = node(i);
  if (at.op == Op::logical_and) {
    split_conditions(at.operand[0]);
    split_conditions(at.operand[1]);
    return;
  }
  Limit limit;
  if (!options_.int32 || !find_limit(at, limit)) return conditions_.push_back(i);
  for (const Limit::Term& term : limit.terms) {
    if (!varies_with_key(term.node)) needed_[index(term.node)] = true;
  }
  limits_.push_back(limit);
}

bool CudaTextWriter::find_limit(const Node& at, Limit& limit) const {
  if (at.op != Op::less && at.op != Op::less_equal) return false;
  if (operand(at, 0).type != Type::integer) return false;
  limit.or_equal = at.op == Op::less_equal;
  return add_terms(at.operand[0], true, limit) && add_terms(at.operand[1], false, limit) &&
         (limit.coefficient == 1 || limit.coefficient == -1);
}

bool CudaTextWriter::add_terms(std::int32_t i, bool added, Limit& limit) const {
  const Node& at = node(i);
  if (limit.terms.size() == max_terms) return false;
  if (!varies_with_key(i) || at.op == Op::name) {
    if (varies_with_key(i)) limit.coefficient += added ? 1 : -1;
    limit.terms.push_back({i, added});
    return true;
  }
  switch (at.op) {
    case Op::negate:
      return add_terms(at.operand[0], !added, limit);
    case Op::add:
      return add_terms(at.operand[0], added, limit) && add_terms(at.operand[1], added, limit);
    case Op::subtract:
      return add_terms(at.operand[0], added, limit) && add_terms(at.operand[1], !added, limit);
    default:
      return false;
  }
}

void CudaTextWriter::write_limits() {
  if (limits_.empty()) return;
  std::string lines = "  int first = -2147483647 - 1, last = 2147483647;\n";
  for (const Limit& limit : limits_) {
    std::string sum = "0ll";
    for (const Limit::Term& term : limit.terms) {
      const Name name = node(term.node).name;
      if (varies_with_key(term.node) && name == Name::col) continue;
      sum += term.added ? " + int64(" : " - int64(";
      sum += varies_with_key(term.node) ? start(name, Level::row) : value_of(term.node, Level::row);
      sum += ")";
    }
    const std::string strict = limit.or_equal ? "0ll" : "1ll";
    if (limit.coefficient > 0) {
      lines += "  last = lower(last, clamp_int(-(" + sum + ") - " + strict + "));\n";
    } else {
      lines += "  first = higher(first, clamp_int(" + sum + " + " + strict + "));\n";
    }
  }
  body(Level::row) += lines;
  members(Level::row) += "  int first;\n  int last;\n";
}

// What the pair's function returns.
std::string CudaTextWriter::conjunction() {
  std::string out;
  const auto also = [&](const std::string& condition) {
    out += (out.empty() ? "" : " & ") + condition;
  };
  bool below = false, above = false;
  for (const Limit& limit : limits_) (limit.coefficient > 0 ? below : above) = true;
  if (above) also("(k.col >= r.first)");
  if (below) also("(k.col <= r.last)");
  for (const std::int32_t condition : conditions_) also(value_of(condition, Level::pair));
  return out;
}

}  // namespace onepass::lang
