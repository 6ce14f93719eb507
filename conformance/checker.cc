#include "conformance/checker.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "conformance/comparison.h"

namespace onepass::conformance {

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

bool Checker::take(const Subject& call, bool ran, Code code, const std::string& error) {
  const bool on_gpu = settings_.device.kind == Device::Kind::cuda;
  passing_over_ = !ran && on_gpu && code == Code::not_supported;
  if (passing_over_ && passed_over_++ == 0) first_reason_ = error;
  if (!ran) fail(call, "refused: " + error);
  return ran;
}

Answer Checker::run(const Call& call) {
  ++calls_;
  Answer answer = conformance::run(call, settings_.threads, settings_.device);
  take(call, answer.ran, answer.code, answer.error);
  if (!answer.guards_held) fail(call, "wrote outside o or lse");
  return answer;
}

Answer Checker::check(const Call& call) {
  Answer answer = run(call);
  if (answer.ran) matches(call, answer);
  return answer;
}

void Checker::matches(const Call& call, const Answer& answer, double most_lse) {
  const reference::Attention reference = reference_of(call);
  const reference::Format format = format_of(call.dtype);

  Worst worst_o, worst_lse;
  double o_size = 1.0, lse_size = 1.0;
  const auto each_row = [&](auto visit) {
    for (std::int64_t b = 0; b < reference.sequences(); ++b) {
      std::vector<std::int64_t> rows = call.sample_rows;
      if (rows.empty()) {
        rows.resize(static_cast<std::size_t>(reference.sequence(b).s_q));
        std::iota(rows.begin(), rows.end(), 0);
      }
      for (std::int64_t h = 0; h < call.q.shape[2]; ++h) {
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
    const reference::Sequence at_b = reference.sequence(b);
    const std::int64_t s_q = call.q.shape[1], h_q = call.q.shape[2], d_v = call.v.shape[3];
    const std::int64_t place = ((at_b.q_batch * s_q + at_b.q_row + row) * h_q + h) * d_v;
    for (std::int64_t i = 0; i < d_v; ++i) {
      const double value = want.o[static_cast<std::size_t>(i)];
      worst_o.see(answer.o[static_cast<std::size_t>(place + i)], value, [&] {
        return at("o", {b, row, h, i});
      });
      o_size = largest(o_size, value);
    }
    const std::int64_t line = (at_b.q_batch * h_q + h) * s_q + at_b.q_row + row;
    worst_lse.see(answer.lse[static_cast<std::size_t>(line)], want.lse, [&] {
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
      std::max(call.dtype == DType::float64 ? 1e-12 : most_lse, ulps * lse_size);
  if (worst_o.error > o_tolerance) {
    fail(call, mismatch(worst_o.where, worst_o.got, worst_o.want, o_tolerance));
  }
  if (worst_lse.error > lse_tolerance) {
    fail(call, mismatch(worst_lse.where, worst_lse.got, worst_lse.want, lse_tolerance));
  }
}

void Checker::close(const Subject& call, std::string_view what, std::span<const double> got,
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

void Checker::same(const Subject& call, std::string_view what, std::span<const double> got,
                   std::span<const double> want) {
  if (got.size() != want.size()) return fail(call, std::string(what) + ": sizes differ");
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(got[i]) && std::isnan(want[i])) continue;
    if (std::memcmp(&got[i], &want[i], sizeof got[i]) == 0) continue;
    return fail(call, mismatch(at(what, {static_cast<std::int64_t>(i)}), got[i], want[i], 0.0));
  }
}

void Checker::probe(const Subject& call, std::string_view what, double got, double want) {
  if (!(std::fabs(got - want) <= 1e-5 * std::fabs(want))) {
    fail(call, mismatch(std::string(what), got, want, 1e-5 * std::fabs(want)));
  }
}

void Checker::expect(const Subject& call, bool condition, std::string_view what) {
  if (!condition) fail(call, std::string(what));
}

void Checker::fail(const Subject& call, const std::string& what) {
  if (passing_over_) return;
  const bool on_gpu = settings_.device.kind == Device::Kind::cuda;
  if (failures_++ == 0) first_failure_ = call.line() + (on_gpu ? " device=cuda: " : ": ") + what;
}

Outcome Checker::outcome() const {
  if (failures_ == 0) {
    std::string text = std::to_string(calls_) + " calls";
    if (passed_over_ > 0) {
      text +=
          ", " + std::to_string(passed_over_) + " of them not on this device, as " + first_reason_;
    }
    return {calls_ > passed_over_, calls_ > 0 && calls_ == passed_over_, text};
  }
  return {false, false,
          std::to_string(failures_) + " failures in " + std::to_string(calls_) +
              " calls, the first: " + first_failure_};
}

}  // namespace onepass::conformance
