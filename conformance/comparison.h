// Distances, and the words for what is too far off.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "onepass/tensor.h"
#include "reference/rounding.h"

namespace onepass::conformance {

reference::Format format_of(DType dtype);
bool sixteen_bits(DType dtype);

/// How far off a value is: 0 when both are NaN or the same infinity, else inf when only one is.
double distance(double got, double want);

/// The larger of `bound` and a finite value's size.
double largest(double bound, double value);

std::string mismatch(const std::string& where, double got, double want, double tolerance);

/// "o[0, 1, 2]"
std::string at(std::string_view what, std::initializer_list<std::int64_t> place);

/// The worst of a set of comparisons.
struct Worst {
  double error = -1.0, got = 0.0, want = 0.0;
  std::string where;
  template <class Place>
  void see(double got_, double want_, Place place) {
    const double error_ = distance(got_, want_);
    if (error_ <= error) return;
    error = error_, got = got_, want = want_, where = place();
  }
};

}  // namespace onepass::conformance
