// Programs built node by node, and their value at a pair written out plainly: what the tests of the
// interval reader compare it with.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "lang/interval.h"
#include "lang/program.h"

namespace onepass::lang::testing {

/// Builds a Program from the leaves up. Equal nodes are shared; finish() drops what is not needed.
class ProgramBuilder {
 public:
  int truth(bool value);
  int integer(std::int64_t value);
  int real(double value);
  int parameter(std::int64_t value);
  int real_parameter(double value);
  int flag(bool value);
  int name(Name name);
  int array(const std::string& name, const TensorView& view);
  int load(int array, std::initializer_list<int> index);
  int load(int array, const std::vector<int>& index);
  int unary(Op op, int a);
  int binary(Op op, int a, int b);
  int select(int condition, int a, int b);
  Type type(int node) const { return program_.nodes[node].type; }
  int rank(int array) const { return program_.arrays[array].view.rank; }

  Program finish(int root) const;

 private:
  int add(Node node);
  Program program_;
};

/// The program as text, for messages.
std::string describe(const Program& program);
std::string describe(const Scope& scope);

/// The mask at one pair. `integers_fit` is cleared if an integer subterm does not fit int32.
bool visible(const Program& mask, const Scope& scope, std::int64_t row, std::int64_t col,
             bool* integers_fit = nullptr);

/// A classifier with the memory of its summaries.
class MaskReader {
 public:
  MaskReader(const Program& mask, const Scope& scope)
      : memory_((Summaries::bytes(mask, scope.s_q, scope.s_kv) + 63) / 64),
        classifier(mask, scope, Summaries(mask, scope, memory_.data())) {}

 private:
  struct alignas(64) Line {
    char bytes[64];
  };
  std::vector<Line> memory_;

 public:
  Classifier classifier;
};

/// How many pairs of a rectangle are visible, for all rectangles of a scope.
class VisibleCounts {
 public:
  VisibleCounts(const Program& mask, const Scope& scope);
  std::int64_t count(std::int64_t row_begin, std::int64_t row_end, std::int64_t col_begin,
                     std::int64_t col_end) const;
  bool integers_fit() const { return integers_fit_; }

 private:
  std::int64_t cols_;
  std::vector<std::int64_t> below_;  // (s_q + 1, s_kv + 1): pairs above and left of a corner
  bool integers_fit_ = true;
};

}  // namespace onepass::lang::testing
