// A small attention call on the CPU with every buffer it needs, and a naive double loop beside it.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "onepass/onepass.h"

namespace onepass::cpu_test {

/// Elements of one dtype, read and written as double.
class Buffer {
 public:
  Buffer(DType dtype, std::int64_t elements)
      : dtype_(dtype), bytes_(static_cast<std::size_t>(elements * size_bytes(dtype))) {}
  double get(std::int64_t i) const;
  void set(std::int64_t i, double value);
  void* data() { return bytes_.data(); }
  DType dtype() const { return dtype_; }
  const std::vector<unsigned char>& bytes() const { return bytes_; }

 private:
  DType dtype_;
  std::vector<unsigned char> bytes_;
};

/// Sets ONEPASS_ISA for a scope.
class ForcedIsa {
 public:
  explicit ForcedIsa(const char* isa) { setenv("ONEPASS_ISA", isa, 1); }
  ~ForcedIsa() { unsetenv("ONEPASS_ISA"); }
  ForcedIsa(const ForcedIsa&) = delete;
  ForcedIsa& operator=(const ForcedIsa&) = delete;
};

/// Instruction sets of this machine that take the dtype.
std::vector<std::string> isas_for(DType dtype);

struct Case {
  std::int64_t b = 1, h_q = 1, h_kv = 1, s_q = 1, s_kv = 1, d = 1, d_v = 1;
  DType dtype = DType::float32;
  DType out_dtype = DType::float32;
  Attention options{};
  /// What options.mask and options.score say, for one pair (b, h, row, col).
  std::function<bool(std::int64_t, std::int64_t, std::int64_t, std::int64_t)> visible{};
  std::function<double(double, std::int64_t, std::int64_t, std::int64_t, std::int64_t)> score{};
  bool with_sink = false;
  /// What options.dropout keeps.
  std::function<bool(std::int64_t, std::int64_t, std::int64_t, std::int64_t)> kept{};
};

/// Buffers in (b, s, h, d) order, filled with normal-like values of a seed; outputs NaN.
struct Call {
  explicit Call(const Case& c, unsigned seed = 1);
  void run(int threads = 1);
  /// What o and lse should be, by the naive loop.
  struct Expected {
    std::vector<double> o, lse;
  };
  Expected expected() const;

  Case c;
  Buffer q, k, v, o, lse, sink;
  TensorView q_view, k_view, v_view, o_view, lse_view, sink_view;
};

/// Largest difference of a buffer from what it should be; equal infinities differ by 0.
double largest_error(const Buffer& got, const std::vector<double>& want);

}  // namespace onepass::cpu_test
