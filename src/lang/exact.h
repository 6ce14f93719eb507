// The exact value of a subterm at one row or key: what summaries are made of.
#pragma once

#include <array>
#include <cstdint>

#include "lang/elements.h"
#include "lang/program.h"
#include "lang/range.h"
#include "lang/sides.h"

namespace onepass::lang::intervals {

/// Value of a node from its operands' values.
Value apply(const Program& program, const Node& node, const Value* operand);
/// Value of a name; `row` and `col` count for those that change with them.
std::int64_t name_value(Name name, const Scope& scope, std::int64_t row, std::int64_t col);

/// The nodes that do not change along the tile, computed once for a scope.
class Constants {
 public:
  /// Leaves them uncomputed where the program is not analysed.
  Constants(const Program& program, const Scope& scope, const Sides& sides);
  Value operator[](int node) const { return values_[node]; }

 private:
  std::array<Value, max_nodes> values_;
};

/// Reads the values of one term along its side.
class TermReader {
 public:
  TermReader() = default;
  TermReader(const Program& program, const Scope& scope, const Sides& sides,
             const Constants& constants, const Term& term);

  Type type() const { return program_->nodes[term_.node].type; }

  /// Calls f(std::int64_t) or f(float) for each index in [begin, end); a boolean is 0 or 1.
  template <class F>
  void for_each(const Constants& constants, std::int64_t begin, std::int64_t end, F&& f) const {
    if (direct_) {
      with_elements(array_->data, array_->dtype,
                    [&](const auto* data) { read(data, begin, end, f); });
    } else if (type() == Type::real) {
      for (std::int64_t i = begin; i < end; ++i) f(compute(constants, i).real);
    } else {
      for (std::int64_t i = begin; i < end; ++i) f(compute(constants, i).integer);
    }
  }

 private:
  template <class T, class F>
  void read(const T* data, std::int64_t begin, std::int64_t end, F& f) const {
    using Seen = decltype(seen(T{}));
    for (std::int64_t i = begin + start_; i < end + start_; ++i) {
      f(i >= 0 && i < size_ ? seen(data[offset_ + i * stride_]) : Seen{0});
    }
  }
  static std::int64_t seen(std::int64_t x) { return x; }
  static std::int64_t seen(std::int32_t x) { return x; }
  static std::int64_t seen(std::uint8_t x) { return x; }
  static std::int64_t seen(Boolean x) { return x; }
  static float seen(float x) { return x; }
  static float seen(double x) { return static_cast<float>(x); }
  static float seen(BFloat16 x) { return x; }
  static float seen(Float16 x) { return x; }

  Value compute(const Constants& constants, std::int64_t index) const;
  void find_direct(const Sides& sides, const Constants& constants);

  const Program* program_ = nullptr;
  Scope scope_;
  Term term_;
  // A term that is one read whose place moves along one dim: with p = index + start, its value is
  // data[offset + p * stride] for p in [0, size), and 0 elsewhere.
  bool direct_ = false;
  const TensorView* array_ = nullptr;
  std::int64_t start_ = 0, size_ = 0, offset_ = 0, stride_ = 0;
};

}  // namespace onepass::lang::intervals
