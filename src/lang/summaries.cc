#include "lang/summaries.h"

#include <algorithm>

#include "lang/blocks.h"
#include "lang/exact.h"
#include "lang/sides.h"

namespace onepass::lang {

using namespace intervals;

std::int64_t Summaries::bytes(const Program& mask, std::int64_t s_q, std::int64_t s_kv) {
  const Sides sides(mask);
  std::int64_t total = 0;
  for (int i = 0; i < sides.term_count; ++i) {
    const Term& term = sides.terms[i];
    total += BlockTree::bytes(term.side == varies_query ? s_q : s_kv, term.compared);
  }
  return total;
}

bool Summaries::per_head(const Program& mask) { return Sides(mask).per_head; }

Summaries::Summaries(const Program& mask, const Scope& scope, void* memory) : memory_(memory) {
  const Sides sides(mask);
  if (sides.term_count == 0) return;
  const Constants constants(mask, scope, sides);
  char* at = static_cast<char*>(memory);
  for (int t = 0; t < sides.term_count; ++t) {
    const Term& term = sides.terms[t];
    const Type type = mask.nodes[term.node].type;
    const std::int64_t length = term.side == varies_query ? scope.s_q : scope.s_kv;
    const TermReader reader(mask, scope, sides, constants, term);
    BlockTree tree(at, length, term.compared);
    at += BlockTree::bytes(length, term.compared);
    for (std::int64_t i = 0; i < tree.count(); ++i) {
      Collector collect(type, tree.set(i));
      reader.for_each(constants, i * block_size, std::min((i + 1) * block_size, length), collect);
      tree.leaf(i) = collect.finish();
    }
    tree.build(type);
  }
}

}  // namespace onepass::lang
