#include "cpu_case.h"

#include <algorithm>
#include <cstring>

#include "cpu/isa.h"

namespace onepass::cpu_test {
namespace {

double bfloat16_value(std::uint16_t bits) {
  const std::uint32_t wide = std::uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

// Nearest by search among the 2^16 candidates' neighbours: slow, and shares no code with the
// kernels.
std::uint16_t nearest_bfloat16(double value) {
  const auto single = static_cast<float>(value);
  std::uint32_t bits;
  std::memcpy(&bits, &single, sizeof bits);
  if (std::isnan(value)) return static_cast<std::uint16_t>(bits >> 16 | 0x40U);
  const auto below = static_cast<std::uint16_t>(bits >> 16);
  const auto above = static_cast<std::uint16_t>(below + 1);
  const double down = std::abs(value - bfloat16_value(below));
  const double up = std::abs(value - bfloat16_value(above));
  if (down != up) return down < up ? below : above;
  return below % 2 == 0 ? below : above;
}

double float16_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  double value =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  if (exponent == 31) {
    value = mantissa ? std::numeric_limits<double>::quiet_NaN()
                     : std::numeric_limits<double>::infinity();
  }
  return bits & 0x8000 ? -value : value;
}

std::uint16_t nearest_float16(double value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return 0x7E00;
  const double size = std::abs(value);
  std::uint16_t best = 0x7C00;
  if (size < 65520.0) {
    std::uint16_t low = 0, high = 0x7BFF;
    while (low < high) {  // largest not above
      const auto middle = static_cast<std::uint16_t>((low + high + 1) / 2);
      if (float16_value(middle) <= size) {
        low = middle;
      } else {
        high = static_cast<std::uint16_t>(middle - 1);
      }
    }
    const double up = low == 0x7BFF ? 65536.0 : float16_value(static_cast<std::uint16_t>(low + 1));
    const double to_low = size - float16_value(low), to_up = up - size;
    best = to_low < to_up || (to_low == to_up && low % 2 == 0)
               ? low
               : static_cast<std::uint16_t>(low + 1);
  }
  return best | sign;
}

}  // namespace

double Buffer::get(std::int64_t i) const {
  const unsigned char* at = bytes_.data() + i * size_bytes(dtype_);
  const auto as = [at](auto value) {
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  switch (dtype_) {
    case DType::float64:
      return as(double{});
    case DType::float32:
      return as(float{});
    case DType::bfloat16:
      return bfloat16_value(as(std::uint16_t{}));
    default:
      return float16_value(as(std::uint16_t{}));
  }
}

void Buffer::set(std::int64_t i, double value) {
  unsigned char* at = bytes_.data() + i * size_bytes(dtype_);
  const auto put = [at](auto element) { std::memcpy(at, &element, sizeof element); };
  switch (dtype_) {
    case DType::float64:
      return put(value);
    case DType::float32:
      return put(static_cast<float>(value));
    case DType::bfloat16:
      return put(nearest_bfloat16(value));
    default:
      return put(nearest_float16(value));
  }
}

std::vector<std::string> isas_for(DType dtype) {
  std::vector<std::string> names;
  for (const Isa isa : cpu::detected_isas()) {
    if (isa == Isa::avx512_bf16 && dtype != DType::bfloat16) continue;
#if defined(__aarch64__)
    if (isa == Isa::baseline) continue;  // never chosen where NEON always is; slow under qemu
#endif
    names.emplace_back(name(isa));
  }
  return names;
}

Call::Call(const Case& given, unsigned seed)
    : c(given),
      q(c.dtype, c.b * c.s_q * c.h_q * c.d),
      k(c.dtype, c.b * c.s_kv * c.h_kv * c.d),
      v(c.dtype, c.b * c.s_kv * c.h_kv * c.d_v),
      o(c.out_dtype, c.b * c.s_q * c.h_q * c.d_v),
      lse(c.dtype == DType::float64 ? DType::float64 : DType::float32, c.b * c.h_q * c.s_q),
      sink(lse.dtype(), c.h_q) {
  q_view = TensorView(q.data(), c.dtype, {c.b, c.s_q, c.h_q, c.d});
  k_view = TensorView(k.data(), c.dtype, {c.b, c.s_kv, c.h_kv, c.d});
  v_view = TensorView(v.data(), c.dtype, {c.b, c.s_kv, c.h_kv, c.d_v});
  o_view = TensorView(o.data(), c.out_dtype, {c.b, c.s_q, c.h_q, c.d_v});
  lse_view = TensorView(lse.data(), lse.dtype(), {c.b, c.h_q, c.s_q});
  sink_view = TensorView(sink.data(), sink.dtype(), {c.h_q});
  std::uint32_t state = seed;
  const auto next = [&state] {  // sum of three uniforms, variance 1
    double sum = 0.0;
    for (int i = 0; i < 3; ++i) {
      state = 1664525U * state + 1013904223U;
      sum += static_cast<double>(state >> 8) / (1 << 23) - 1.0;
    }
    return sum;
  };
  for (Buffer* buffer : {&q, &k, &v, &sink}) {
    const auto count =
        static_cast<std::int64_t>(buffer->bytes().size()) / size_bytes(buffer->dtype());
    for (std::int64_t i = 0; i < count; ++i) buffer->set(i, next());
  }
}

void Call::run(int threads) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (std::int64_t i = 0; i < o_view.elements(); ++i) o.set(i, nan);
  for (std::int64_t i = 0; i < lse_view.elements(); ++i) lse.set(i, nan);
  Attention options = c.options;
  options.lse = lse_view;
  if (c.with_sink) options.sink = sink_view;
  attention(q_view, k_view, v_view, o_view, options, {.threads = threads});
}

Call::Expected Call::expected() const {
  const double infinity = std::numeric_limits<double>::infinity();
  const double scale = c.options.scale.value_or(c.d == 0 ? 1.0 : 1.0 / std::sqrt(c.d));
  const auto values = [](const Buffer& buffer) {
    std::vector<double> all(buffer.bytes().size() /
                            static_cast<std::size_t>(size_bytes(buffer.dtype())));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = buffer.get(static_cast<std::int64_t>(i));
    return all;
  };
  const std::vector<double> wide_q = values(q), wide_k = values(k), wide_v = values(v);
  Expected want{std::vector<double>(static_cast<std::size_t>(o_view.elements())),
                std::vector<double>(static_cast<std::size_t>(lse_view.elements()))};
  for (std::int64_t b = 0; b < c.b; ++b) {
    for (std::int64_t h = 0; h < c.h_q; ++h) {
      const std::int64_t h_kv = h / (c.h_q / c.h_kv);
      for (std::int64_t i = 0; i < c.s_q; ++i) {
        std::vector<double> s(static_cast<std::size_t>(c.s_kv));
        double most = c.with_sink ? sink.get(h) : -infinity;
        for (std::int64_t j = 0; j < c.s_kv; ++j) {
          const double* q_row = wide_q.data() + ((b * c.s_q + i) * c.h_q + h) * c.d;
          const double* k_row = wide_k.data() + ((b * c.s_kv + j) * c.h_kv + h_kv) * c.d;
          double logit = 0.0;
          for (std::int64_t e = 0; e < c.d; ++e) logit += q_row[e] * k_row[e];
          logit *= scale;
          if (c.score) logit = c.score(logit, b, h, i, j);
          if (c.visible && !c.visible(b, h, i, j)) logit = -infinity;
          s[static_cast<std::size_t>(j)] = logit;
          most = std::max(most, logit);
        }
        double total = c.with_sink ? std::exp(sink.get(h) - most) : 0.0;
        double* o_row = want.o.data() + ((b * c.s_q + i) * c.h_q + h) * c.d_v;
        for (std::int64_t j = 0; j < c.s_kv; ++j) {
          if (s[static_cast<std::size_t>(j)] == -infinity) continue;
          const double weight = std::exp(s[static_cast<std::size_t>(j)] - most);
          const double* v_row = wide_v.data() + ((b * c.s_kv + j) * c.h_kv + h_kv) * c.d_v;
          total += weight;
          if (c.kept && !c.kept(b, h, i, j)) continue;
          for (std::int64_t e = 0; e < c.d_v; ++e) o_row[e] += weight * v_row[e];
        }
        for (std::int64_t e = 0; e < c.d_v; ++e)
          o_row[e] /= total == 0.0 ? 1.0 : total * (1.0 - c.options.dropout.p);
        want.lse[static_cast<std::size_t>((b * c.h_q + h) * c.s_q + i)] =
            total == 0.0 ? -infinity : most + std::log(total);
      }
    }
  }
  return want;
}

double largest_error(const Buffer& got, const std::vector<double>& want) {
  double worst = 0.0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double value = got.get(static_cast<std::int64_t>(i));
    const double error = value == want[i] ? 0.0 : std::abs(value - want[i]);
    if (!(error <= worst)) worst = error;  // NaN counts
  }
  return worst;
}

}  // namespace onepass::cpu_test
