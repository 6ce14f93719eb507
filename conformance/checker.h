// Runs calls and compares; keeps the first failure in words.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/backward_call.h"
#include "conformance/cache_call.h"
#include "conformance/call.h"
#include "conformance/case.h"

namespace onepass::conformance {

/// The float dtypes of attention.
inline constexpr DType float_dtypes[] = {DType::float32, DType::float64, DType::bfloat16,
                                         DType::float16};

/// Relative tolerance of values that are known in closed form: 1e-5 for float32 (T1), 1e-12 for
/// float64, two roundings of a 16-bit output. Relative to max(1, largest value).
double closed_form_tolerance(DType dtype);

/// What a failure names: any call with a line.
struct Subject {
  template <class AnyCall>
  Subject(const AnyCall& call)  // NOLINT: implicit, as every call is one
      : line([&call] { return call.line(); }) {}
  std::function<std::string()> line;
};

class Checker {
 public:
  explicit Checker(const Settings& settings) : settings_(settings) {}

  /// Runs the library; a call that fails or writes outside its outputs is a failure.
  Answer run(const Call& call);

  /// `answer` against the reference: T1 for float32 (or twice the error of a plain float32
  /// computation), T2 for 16 bits (twice the plain error plus 1e-5); lse within 1e-3 or two units
  /// in the last place.
  void matches(const Call& call, const Answer& answer, double lse_tolerance = 1e-3);

  /// Both of the above.
  Answer check(const Call& call);

  /// The same for a backward, and the forward that it needs. Each gradient has its own tolerance,
  /// with `plain_gradients` as the plain computation. Where terms cancel, or a few rows make the
  /// plain error small by chance, an element may also be off by the rounding of its terms, relative
  /// to the sum of their absolute values: one of 16 bits, 16 of float32 or float64.
  Gradients run(const BackwardCall& call);
  void matches(const BackwardCall& call, const Gradients& gradients);
  Gradients check(const BackwardCall& call);

  /// The same for a call over a cache; what it appended lies where it belongs, the rest is kept.
  CacheAnswer run(const CacheCall& call);
  CacheAnswer check(const CacheCall& call);

  /// Every value within `tolerance` * max(1, largest |want|). NaN equals NaN only.
  void close(const Subject& call, std::string_view what, std::span<const double> got,
             std::span<const double> want, double tolerance);
  void close(const Subject& call, std::string_view what, double got, double want,
             double tolerance) {
    close(call, what, std::span(&got, 1), std::span(&want, 1), tolerance);
  }

  /// T0: the same bits (any NaN equals any NaN).
  void same(const Subject& call, std::string_view what, std::span<const double> got,
            std::span<const double> want);
  void same(const Subject& call, const Answer& got, const Answer& want) {
    same(call, "o", got.o, want.o);
    same(call, "lse", got.lse, want.lse);
  }
  void same(const Subject& call, const Gradients& got, const Gradients& want);

  /// A probe sum of the fp32 path: relative 1e-5.
  void probe(const Subject& call, std::string_view what, double got, double want);

  void expect(const Subject& call, bool condition, std::string_view what);
  void fail(const Subject& call, const std::string& what);

  Outcome outcome() const;
  const Settings& settings() const { return settings_; }

 private:
  Settings settings_;
  // Whether a call ran. One that a GPU has no kernel for yet is counted, and what is then said of
  // it is no failure.
  bool take(const Subject& call, bool ran, Code code, const std::string& error);

  std::int64_t calls_ = 0, failures_ = 0, passed_over_ = 0;
  bool passing_over_ = false;  // the last call
  std::string first_failure_, first_reason_;
};

}  // namespace onepass::conformance
