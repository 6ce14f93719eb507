// A tensor as onepass sees one: a pointer, an element type, a device, a shape and strides.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace onepass {

enum class DType : std::uint8_t {
  float64,
  float32,
  bfloat16,
  float16,
  int64,
  int32,
  uint8,
  boolean,
};

/// Bytes of one element.
std::int64_t size_bytes(DType dtype);
/// "float64", "float32", "bfloat16", "float16", "int64", "int32", "uint8" or "bool".
const char* name(DType dtype);
/// True for float64, float32, bfloat16 and float16.
bool is_float(DType dtype);

struct Device {
  enum class Kind : std::uint8_t { cpu, cuda };
  Kind kind = Kind::cpu;
  int index = 0;
  friend bool operator==(const Device&, const Device&) = default;
};

inline constexpr int max_rank = 4;

/// Non-owning view of up to four dims. Strides are in elements and may be 0 or negative.
/// A default-constructed view stands for "not given".
struct TensorView {
  void* data = nullptr;
  DType dtype = DType::float32;
  Device device;
  int rank = -1;
  std::array<std::int64_t, max_rank> shape{};
  std::array<std::int64_t, max_rank> strides{};

  TensorView() = default;
  /// Contiguous (row-major) view. A pointer to const is accepted for inputs; nothing writes to
  /// them.
  TensorView(const void* data, DType dtype, std::initializer_list<std::int64_t> shape,
             Device device = {});
  TensorView(const void* data, DType dtype, std::span<const std::int64_t> shape,
             std::span<const std::int64_t> strides, Device device = {});
  TensorView(const float* data, std::initializer_list<std::int64_t> shape)
      : TensorView(data, DType::float32, shape) {}
  TensorView(const double* data, std::initializer_list<std::int64_t> shape)
      : TensorView(data, DType::float64, shape) {}

  bool given() const { return rank >= 0; }
  std::int64_t elements() const;
  /// The same memory with two dims exchanged, as in a (b, h, s, d) buffer seen as (b, s, h, d).
  TensorView transposed(int dim0, int dim1) const;
  /// `float32[2, 128, 8, 64]`
  std::string describe() const;
};

}  // namespace onepass
