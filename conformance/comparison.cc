#include "conformance/comparison.h"

#include <cmath>
#include <cstdio>
#include <limits>

namespace onepass::conformance {
namespace {

std::string digits(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

}  // namespace

reference::Format format_of(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return reference::Format::float64;
    case DType::bfloat16:
      return reference::Format::bfloat16;
    case DType::float16:
      return reference::Format::float16;
    default:
      return reference::Format::float32;
  }
}

bool sixteen_bits(DType dtype) { return size_bytes(dtype) == 2; }

double distance(double got, double want) {
  if (got == want || (std::isnan(got) && std::isnan(want))) return 0.0;
  const double error = std::fabs(got - want);
  return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
}

double largest(double bound, double value) {
  return std::isfinite(value) ? std::max(bound, std::fabs(value)) : bound;
}

std::string mismatch(const std::string& where, double got, double want, double tolerance) {
  return where + " is " + digits(got) + ", not " + digits(want) + " (within " + digits(tolerance) +
         ")";
}

std::string at(std::string_view what, std::initializer_list<std::int64_t> place) {
  std::string text(what);
  const char* before = "[";
  for (const std::int64_t i : place) text += before + std::to_string(i), before = ", ";
  return text + "]";
}

}  // namespace onepass::conformance
