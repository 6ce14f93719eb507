#include "core/overlap.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

namespace onepass {
namespace {

struct Dim {
  std::int64_t size, stride_bytes;
};

// A view as runs of `run_bytes` at `first` plus every combination of the dims: strides positive,
// the finest first, dims that continue the run taken into it.
struct Runs {
  std::uintptr_t first = 0;
  std::int64_t run_bytes = 0;
  std::vector<Dim> dims;
};

Runs runs_of(const TensorView& view) {
  Runs out;
  out.first = reinterpret_cast<std::uintptr_t>(view.data);
  out.run_bytes = size_bytes(view.dtype);
  for (int i = 0; i < view.rank; ++i) {
    const std::int64_t stride_bytes = view.strides[i] * size_bytes(view.dtype);
    if (view.shape[i] <= 1 || stride_bytes == 0) continue;
    if (stride_bytes < 0) {
      out.first -= static_cast<std::uintptr_t>((view.shape[i] - 1) * -stride_bytes);
    }
    out.dims.push_back({view.shape[i], std::abs(stride_bytes)});
  }
  std::sort(out.dims.begin(), out.dims.end(),
            [](const Dim& a, const Dim& b) { return a.stride_bytes < b.stride_bytes; });
  const auto take_finest = [&] {
    const Dim dim = out.dims.front();
    out.run_bytes += (dim.size - 1) * dim.stride_bytes;
    out.dims.erase(out.dims.begin());
  };
  // A strided last dim becomes one run with its gaps.
  if (!out.dims.empty() && view.rank > 0 && view.shape[view.rank - 1] > 1 &&
      out.dims.front().stride_bytes ==
          std::abs(view.strides[view.rank - 1]) * size_bytes(view.dtype)) {
    take_finest();
  }
  while (!out.dims.empty() && out.dims.front().stride_bytes <= out.run_bytes) take_finest();
  return out;
}

ByteRange range_of(const Runs& runs) {
  std::int64_t bytes = runs.run_bytes;
  for (const Dim& dim : runs.dims) bytes += (dim.size - 1) * dim.stride_bytes;
  return {runs.first, runs.first + static_cast<std::uintptr_t>(bytes)};
}

// Both step by the same largest stride, and within a step they stay apart: keys and values that
// alternate, as pages of one pool do. Told without listing the runs, which may be many.
bool alternate(const Runs& a, const Runs& b) {
  if (a.dims.empty() || b.dims.empty()) return false;
  const std::int64_t step = a.dims.back().stride_bytes;
  if (b.dims.back().stride_bytes != step) return false;
  const auto span = [](Runs runs) {
    runs.dims.pop_back();
    const ByteRange range = range_of(runs);
    return static_cast<std::int64_t>(range.end - range.begin);
  };
  const auto distance = static_cast<std::int64_t>(b.first - a.first) % step;
  const std::int64_t b_at = distance < 0 ? distance + step : distance;
  return span(a) <= b_at && b_at + span(b) <= step;
}

// Every run, sorted by address.
std::vector<ByteRange> intervals_of(const Runs& runs) {
  std::vector<std::uintptr_t> starts = {runs.first};
  for (const Dim& dim : runs.dims) {
    const std::size_t count = starts.size();
    for (std::int64_t i = 1; i < dim.size; ++i) {
      for (std::size_t j = 0; j < count; ++j) {
        starts.push_back(starts[j] + static_cast<std::uintptr_t>(i * dim.stride_bytes));
      }
    }
  }
  std::sort(starts.begin(), starts.end());
  std::vector<ByteRange> out;
  out.reserve(starts.size());
  for (const std::uintptr_t start : starts) {
    out.push_back({start, start + static_cast<std::uintptr_t>(runs.run_bytes)});
  }
  return out;
}

}  // namespace

ByteRange byte_range(const TensorView& view) {
  std::int64_t below = 0, above = size_bytes(view.dtype);
  for (int i = 0; i < view.rank; ++i) {
    if (view.shape[i] == 0) return {};
    const std::int64_t reach = (view.shape[i] - 1) * view.strides[i] * size_bytes(view.dtype);
    (reach < 0 ? below : above) += reach;
  }
  if (!view.given()) return {};
  const auto first = reinterpret_cast<std::uintptr_t>(view.data);
  return {first + static_cast<std::uintptr_t>(below), first + static_cast<std::uintptr_t>(above)};
}

bool overlap(const TensorView& a, const TensorView& b) {
  if (!meet(byte_range(a), byte_range(b))) return false;
  const Runs runs_a = runs_of(a), runs_b = runs_of(b);
  if (alternate(runs_a, runs_b)) return false;
  const std::vector<ByteRange> all_a = intervals_of(runs_a), all_b = intervals_of(runs_b);
  for (std::size_t i = 0, j = 0; i < all_a.size() && j < all_b.size();) {
    if (meet(all_a[i], all_b[j])) return true;
    (all_a[i].end <= all_b[j].begin ? i : j) += 1;
  }
  return false;
}

}  // namespace onepass
