// How a mask is classified: its cases, and where the interval of each subterm comes from.
#pragma once

#include <array>
#include <cstdint>

#include "lang/affine.h"
#include "lang/cases.h"
#include "lang/exact.h"
#include "lang/interval.h"
#include "lang/program.h"
#include "lang/range.h"
#include "lang/sides.h"
#include "lang/term_query.h"
#include "lang/zone.h"

namespace onepass::lang::intervals {

/// The mask and its negation are written as short lists of cases. A tile is skipped when no case of
/// the mask can occur in it, and full when no case of the negation can. A case that is only a zone
/// is decided by a few comparisons; where it has literals too, the subterms under them get
/// intervals over the part of the tile inside the zone. What does not vary with the tile is
/// computed once.
class Analysis {
 public:
  Analysis(const Program& mask, const Scope& scope, void* summaries);
  TileKind classify(const TileRange& tile) const;
  /// The mask, where it is one zone exactly; else null.
  const Zone* zone() const;

 private:
  /// Where the interval of a node comes from.
  enum class Source : std::uint8_t {
    constant,    // does not vary with the tile, or nothing is known of it
    affine,      // integer affine in row and col
    difference,  // comparison of two such: their difference against 0
    term,        // summarised
    shared,      // == or != between terms of both sides
    load,        // array read at a place that uses both sides
    apply,       // anything else: from its operands' intervals
  };
  struct Origin {
    Source source;
    Type operand_type;
    union {
      Range constant;
      Affine affine;
    };
  };

  Origin origin_of(int i, const Affine* affine) const;
  void find_needs(const Cases& cases, NodeSet* needs) const;
  bool any_occurs(const Cases& cases, const NodeSet* needs, const Zone& tile) const;
  bool occurs(const Case& which, const NodeSet& needs, const Zone& inside) const;
  Range range_of(int i, const Zone& inside, const Range* ranges) const;

  const Program* program_;
  Zone domain_;
  Sides sides_;
  Constants constants_;
  Cases visible_, hidden_;
  std::array<NodeSet, Cases::most> visible_needs_, hidden_needs_;
  std::array<TermQuery, max_terms> terms_;
  std::array<Origin, max_nodes> origin_;
};

}  // namespace onepass::lang::intervals
