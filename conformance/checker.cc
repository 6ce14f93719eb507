#include "conformance/checker.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <numeric>

namespace onepass::conformance {
namespace {

using reference::Format;

Format format_of(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return Format::float64;
    case DType::bfloat16:
      return Format::bfloat16;
    case DType::float16:
      return Format::float16;
    default:
      return Format::float32;
  }
}

bool sixteen_bits(DType dtype) { return size_bytes(dtype) == 2; }

std::string digits(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

// How far off a value is: 0 when both are NaN or the same infinity, else inf when only one is.
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

// The worst of a set of comparisons.
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

std::string at(std::string_view what, std::initializer_list<std::int64_t> place) {
  std::string text(what);
  const char* before = "[";
  for (const std::int64_t i : place) text += before + std::to_string(i), before = ", ";
  return text + "]";
}

}  // namespace

double closed_form_tolerance(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return 1e-12;
    case DType::bfloat16:
      return std::ldexp(1.0, -7);
    case DType::float16:
      return std::ldexp(1.0, -10);
    default:
      return 1e-5;
  }
}

Answer Checker::run(const Call& call) {
  ++calls_;
  Answer answer = conformance::run(call, settings_.threads);
  if (!answer.ran) fail(call, "refused: " + answer.error);
  if (!answer.guards_held) fail(call, "wrote outside o or lse");
  return answer;
}

Answer Checker::check(const Call& call) {
  Answer answer = run(call);
  if (answer.ran) matches(call, answer);
  return answer;
}

void Checker::matches(const Call& call, const Answer& answer) {
  const Shape s = call.shape();
  const reference::Attention reference = reference_of(call);
  const Format format = format_of(call.dtype);
  std::vector<std::int64_t> rows = call.sample_rows;
  if (rows.empty()) {
    rows.resize(static_cast<std::size_t>(s.s_q));
    std::iota(rows.begin(), rows.end(), 0);
  }

  Worst worst_o, worst_lse;
  double o_size = 1.0, lse_size = 1.0;
  const auto each_row = [&](auto visit) {
    for (std::int64_t b = 0; b < s.b; ++b) {
      for (std::int64_t h = 0; h < s.h_q; ++h) {
        for (const std::int64_t row : rows) visit(b, h, row);
      }
    }
  };
  double plain_o = 0.0, plain_lse = 0.0;
  const auto add_plain = [&](std::int64_t b, std::int64_t h, std::int64_t row,
                             const reference::Row& want) {
    const reference::Row plain = reference.plain_row(format, b, h, row);
    for (std::size_t i = 0; i < want.o.size(); ++i) {
      const double error = distance(rounded(call.out_dtype, plain.o[i]), want.o[i]);
      plain_o = largest(plain_o, error);
    }
    plain_lse = largest(plain_lse, distance(plain.lse, want.lse));
  };
  each_row([&](std::int64_t b, std::int64_t h, std::int64_t row) {
    const reference::Row want = reference.row(b, h, row);
    const std::int64_t place = ((b * s.s_q + row) * s.h_q + h) * s.d_v;
    for (std::int64_t i = 0; i < s.d_v; ++i) {
      const double value = want.o[static_cast<std::size_t>(i)];
      worst_o.see(answer.o[static_cast<std::size_t>(place + i)], value, [&] {
        return at("o", {b, row, h, i});
      });
      o_size = largest(o_size, value);
    }
    worst_lse.see(answer.lse[static_cast<std::size_t>((b * s.h_q + h) * s.s_q + row)], want.lse,
                  [&] {
                    return at("lse", {b, h, row});
                  });
    lse_size = largest(lse_size, want.lse);
    if (sixteen_bits(call.dtype)) add_plain(b, h, row, want);
  });

  double o_tolerance = closed_form_tolerance(call.dtype) * o_size;
  if (call.dtype == DType::float32 && worst_o.error > o_tolerance) {
    each_row([&](std::int64_t b, std::int64_t h, std::int64_t row) {
      add_plain(b, h, row, reference.row(b, h, row));
    });
    o_tolerance = std::max(o_tolerance, 2.0 * plain_o);
  }
  if (sixteen_bits(call.dtype)) o_tolerance = 2.0 * plain_o + 1e-5;
  const double ulps = call.dtype == DType::float64 ? 1e-12 : std::ldexp(1.0, -22);
  const double lse_tolerance =
      std::max(call.dtype == DType::float64 ? 1e-12 : 1e-3, ulps * lse_size);
  if (worst_o.error > o_tolerance) {
    fail(call, mismatch(worst_o.where, worst_o.got, worst_o.want, o_tolerance));
  }
  if (worst_lse.error > lse_tolerance) {
    fail(call, mismatch(worst_lse.where, worst_lse.got, worst_lse.want, lse_tolerance));
  }
}

void Checker::close(const Call& call, std::string_view what, std::span<const double> got,
                    std::span<const double> want, double tolerance) {
  if (got.size() != want.size()) return fail(call, std::string(what) + ": sizes differ");
  Worst worst;
  double size = 1.0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    worst.see(got[i], want[i], [&] { return at(what, {static_cast<std::int64_t>(i)}); });
    size = largest(size, want[i]);
  }
  if (worst.error > tolerance * size) {
    fail(call, mismatch(worst.where, worst.got, worst.want, tolerance * size));
  }
}

void Checker::same(const Call& call, std::string_view what, std::span<const double> got,
                   std::span<const double> want) {
  if (got.size() != want.size()) return fail(call, std::string(what) + ": sizes differ");
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(got[i]) && std::isnan(want[i])) continue;
    if (std::memcmp(&got[i], &want[i], sizeof got[i]) == 0) continue;
    return fail(call, mismatch(at(what, {static_cast<std::int64_t>(i)}), got[i], want[i], 0.0));
  }
}

void Checker::probe(const Call& call, std::string_view what, double got, double want) {
  if (!(std::fabs(got - want) <= 1e-5 * std::fabs(want))) {
    fail(call, mismatch(std::string(what), got, want, 1e-5 * std::fabs(want)));
  }
}

void Checker::expect(const Call& call, bool condition, std::string_view what) {
  if (!condition) fail(call, std::string(what));
}

void Checker::fail(const Call& call, const std::string& what) {
  if (failures_++ == 0) first_failure_ = call.line() + ": " + what;
}

Outcome Checker::outcome() const {
  if (failures_ == 0) return {calls_ > 0, std::to_string(calls_) + " calls"};
  return {false, std::to_string(failures_) + " failures in " + std::to_string(calls_) +
                     " calls, the first: " + first_failure_};
}

}  // namespace onepass::conformance
