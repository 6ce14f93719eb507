// Memory for one tensor: any layout, NaN before the first write, guards that notice a stray one.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "onepass/tensor.h"

namespace onepass::conformance {

/// How a (b, s, h, d) tensor lies in memory. Gaps hold NaN.
enum class Layout {
  seq_major,         // contiguous
  head_major,        // a (b, h, s, d) buffer
  every_second_row,  // of a buffer twice as long
  part_of_wider,     // rows of a fused buffer with more heads
  strided_dim,       // stride 2 in the last dim
  reversed,          // rows from the last to the first, stride negative
  one_head,          // one head seen as many, stride 0: inputs only
  one_value,         // one element seen everywhere, strides 0: inputs only
};

/// "seq_major", ...
const char* name(Layout layout);

/// Elements at `view()` within a larger block whose every byte starts as 0xff, NaN in each format.
class Storage {
 public:
  /// At least so many before the first element and after the last.
  static constexpr std::int64_t guard_bytes = 256;

  Storage(DType dtype, std::span<const std::int64_t> shape, Layout layout = Layout::seq_major);
  Storage(Storage&&) = default;  // a copy's view would point into the original

  TensorView view() const { return view_; }
  /// Writes and reads in logical (row-major) order; values are rounded to the dtype.
  void write(std::span<const double> values);
  std::vector<double> read() const;
  /// Every byte outside the elements is still 0xff.
  bool guards_hold() const;
  /// No element has been written since construction.
  bool untouched() const;

 private:
  /// visit(index in logical order, offset of the element in the block) for every element.
  void each_element(auto visit) const;

  std::vector<std::byte> block_;
  TensorView view_;
};

/// The nearest value of a float dtype; other dtypes are returned as they are.
double rounded(DType dtype, double value);

}  // namespace onepass::conformance
