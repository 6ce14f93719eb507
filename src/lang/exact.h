// The exact value of a subterm at one row or key: what summaries are made of.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "lang/elements.h"
#include "lang/program.h"
#include "lang/range.h"
#include "lang/sides.h"
#include "lang/values.h"

namespace onepass::lang::intervals {

/// The nodes that do not change along the tile, computed once for a scope.
class Constants {
 public:
  /// Leaves them uncomputed where the program is not analysed.
  Constants(const Program& program, const Scope& scope, const Sides& sides);
  Value operator[](int node) const { return values_[node]; }
  const Value* at(int node) const { return &values_[node]; }

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
      return;
    }
    Value values[lanes];
    for (std::int64_t i = begin; i < end; i += lanes) {
      const int count = static_cast<int>(std::min<std::int64_t>(lanes, end - i));
      compute(constants, i, count, values);
      for (int lane = 0; lane < count; ++lane) {
        if (type() == Type::real) {
          f(values[lane].real);
        } else {
          f(values[lane].integer);
        }
      }
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

  /// Values at [begin, begin + count), at most `lanes` of them.
  static constexpr int lanes = 16;
  void compute(const Constants& constants, std::int64_t begin, int count, Value* out) const;
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
