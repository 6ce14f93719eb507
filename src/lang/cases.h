// A mask as a short list of cases, each a zone of pairs and a few subterms that decide inside it.
#pragma once

#include <array>
#include <cstdint>

#include "lang/affine.h"
#include "lang/exact.h"
#include "lang/sides.h"
#include "lang/zone.h"

namespace onepass::lang::intervals {

/// A boolean node, or its negation.
struct Literal {
  std::int16_t node;
  bool value;  // the case wants the node to have this value
};

/// All pairs of the zone at which every literal holds.
struct Case {
  static constexpr int max_literals = 6;
  Zone zone;
  int literals = 0;
  std::array<Literal, max_literals> literal;
};

/// A union of cases. It may hold more pairs than the formula it stands for, never fewer.
struct Cases {
  static constexpr int most = 8;
  int count = 0;
  std::array<Case, most> at;
};

/// What the construction of cases looks at.
struct Formula {
  const Program& program;
  const Sides& sides;
  const Constants& constants;
  const Affine* affine;  // of each node
  const Zone& domain;    // every pair of the scope
};

/// The cases in which this boolean node has this value. Conjunctions meet their zones, disjunctions
/// list theirs; integer comparisons of affine terms (with abs, min and max of such) whose
/// difference moves with the row, the col or col - row alone become zones; everything else is a
/// literal.
Cases cases_of(const Formula& formula, int node, bool value);

}  // namespace onepass::lang::intervals
