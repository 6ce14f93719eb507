// The gradients of a call against the reference's.
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "conformance/checker.h"
#include "conformance/comparison.h"

namespace onepass::conformance {
namespace {

using All = reference::Gradients;
using Line = std::span<const double>;

// One gradient: the library's, and where a reference holds it.
struct One {
  std::string name;
  Line got;
  std::function<Line(const All&)> of;
  DType dtype;
};

// Computes each reference when it is asked for.
class References {
 public:
  explicit References(const BackwardCall& call) : call_(call) {}
  const All& exact() { return made(exact_, reference_gradients); }
  const All& plain() { return made(plain_, plain_gradients); }
  const All& terms() { return made(terms_, absolute_terms); }

 private:
  const All& made(std::optional<All>& kept, All (*make)(const BackwardCall&)) {
    if (!kept) kept = make(call_);
    return *kept;
  }
  const BackwardCall& call_;
  std::optional<All> exact_, plain_, terms_;
};

// What rounding may do to an element, relative to the sum of its absolute terms: one rounding of
// each to 16 bits; 16 of float32 and float64, whose sums and exponentials count.
double rounding_of_terms(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return std::ldexp(1.0, -49);
    case DType::bfloat16:
      return std::ldexp(1.0, -9);
    case DType::float16:
      return std::ldexp(1.0, -12);
    default:
      return std::ldexp(1.0, -20);
  }
}

double tolerance(const One& one, DType dtype, References& references) {
  const Line exact = one.of(references.exact());
  double size = 1.0, worst = 0.0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    size = largest(size, exact[i]);
    worst = std::max(worst, distance(one.got[i], exact[i]));
  }
  const double tight = closed_form_tolerance(dtype) * size;
  if (dtype == DType::float64 || (!sixteen_bits(dtype) && worst <= tight)) return tight;
  double plain_error = 0.0;
  const Line plain = one.of(references.plain());
  for (std::size_t i = 0; i < exact.size(); ++i) {
    plain_error = largest(plain_error, distance(rounded(one.dtype, plain[i]), exact[i]));
  }
  return sixteen_bits(dtype) ? 2.0 * plain_error + 1e-5 : std::max(tight, 2.0 * plain_error);
}

}  // namespace

Gradients Checker::run(const BackwardCall& call) {
  ++calls_;
  Gradients gradients = conformance::run(call, settings_.threads, settings_.device);
  take(call, gradients.ran, gradients.code, gradients.error);
  if (!gradients.guards_held) fail(call, "wrote outside the gradients");
  return gradients;
}

Gradients Checker::check(const BackwardCall& call) {
  Gradients gradients = run(call);
  // Its forward may run where the backward does not.
  if (gradients.forward.ran) {
    const bool over = std::exchange(passing_over_, false);
    matches(call.call, gradients.forward);
    passing_over_ = over;
  }
  if (gradients.ran) matches(call, gradients);
  return gradients;
}

void Checker::matches(const BackwardCall& call, const Gradients& got) {
  const DType dtype = call.call.dtype, out = call.gradient_dtype;
  const DType sums = dtype == DType::float64 ? dtype : DType::float32;
  std::vector<One> all = {{"dq", got.dq, [](const All& x) -> Line { return x.dq.data; }, out},
                          {"dk", got.dk, [](const All& x) -> Line { return x.dk.data; }, out},
                          {"dv", got.dv, [](const All& x) -> Line { return x.dv.data; }, out},
                          {"dsink", got.dsink, [](const All& x) -> Line { return x.dsink; }, sums}};
  for (const std::string& name : call.dargs) {
    all.push_back({"d" + name, got.dargs.at(name),
                   [&name](const All& x) -> Line { return x.darguments.at(name); }, sums});
  }
  References references(call);
  for (const One& one : all) {
    const Line exact = one.of(references.exact());
    if (one.got.size() != exact.size()) return fail(call, one.name + ": sizes differ");
    const double allowed = tolerance(one, dtype, references);
    Worst worst;
    for (std::size_t i = 0; i < exact.size(); ++i) {
      if (distance(one.got[i], exact[i]) <= allowed) continue;
      const double terms = one.of(references.terms())[i];
      if (distance(one.got[i], exact[i]) <= rounding_of_terms(dtype) * terms) continue;
      worst.see(one.got[i], exact[i], [&] { return at(one.name, {static_cast<std::int64_t>(i)}); });
    }
    if (worst.error > 0.0) fail(call, mismatch(worst.where, worst.got, worst.want, allowed));
  }
}

void Checker::same(const Subject& call, const Gradients& got, const Gradients& want) {
  same(call, "dq", got.dq, want.dq);
  same(call, "dk", got.dk, want.dk);
  same(call, "dv", got.dv, want.dv);
  same(call, "dsink", got.dsink, want.dsink);
  for (const auto& [name, gradient] : want.dargs) {
    same(call, "d" + name, got.dargs.at(name), gradient);
  }
}

}  // namespace onepass::conformance
