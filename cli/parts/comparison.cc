#include "cli/parts/comparison.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "cli/parts/convert.h"
#include "cli/parts/error.h"
#include "cli/parts/options.h"
#include "cli/parts/peak_memory.h"
#include "cli/parts/visible.h"

namespace onepass::cli {
namespace {

constexpr double budget_s = 10.0;

// Bytes that body makes this process hold beyond what it holds now; -1 where nobody says.
template <class Body>
std::int64_t peak_of(const Body& body) {
  const bool known = reset_peak_memory();
  const std::int64_t before = memory_bytes();
  body();
  const std::int64_t peak = peak_memory_bytes();
  return known && before >= 0 && peak >= 0 ? std::max<std::int64_t>(0, peak - before) : -1;
}

double largest_difference(const TensorView& a, const TensorView& b) {
  const Array x = converted(a, DType::float64), y = converted(b, DType::float64);
  double largest = 0.0;
  for (std::int64_t i = 0; i < x.view.elements(); ++i) {
    largest = larger_error(largest, error_of(x.data<double>()[i], y.data<double>()[i]));
  }
  return largest;
}

}  // namespace

std::int64_t counted_bytes(const Problem& problem, std::int64_t visited_tile_keys) {
  const std::int64_t element = size_bytes(problem.dtype);
  return problem.q.elements() * element + problem.o.elements() * size_bytes(problem.out_dtype) +
         visited_tile_keys * (problem.d + problem.d_v) * element;
}

Comparison compare(const TensorView& q, const TensorView& k, const TensorView& v,
                   const TensorView& o, const Attention& options, int threads, int runs,
                   Device device) {
  const Problem problem = value_of(validate(q, k, v, o, options));
  if (problem.dropout.p != 0.0) {
    throw Error(
        Status::invalid("dropout: " + std::to_string(problem.dropout.p) +
                        "; attention by hand has none, so 0 is allowed here; leave it out"));
  }
  Comparison result;
  conformance::Mirror mirror(device);
  Attention placed = options;
  mirror.take(placed);
  const TensorView q_at = mirror.of(q), k_at = mirror.of(k), v_at = mirror.of(v);
  const TensorView o_at = mirror.of(o);
  result.plan = prepare(q_at, k_at, v_at, o_at, placed, threads);
  const Work work = count_work(problem, result.plan.tile);
  result.flops = work.flops(problem);
  result.visible_share = work.share(problem);
  result.fused_bytes_moved = counted_bytes(problem, work.visited_tile_keys);

  Exec exec;
  exec.threads = threads;
  const auto fused = [&] { attention(q_at, k_at, v_at, o_at, placed, exec); };
  const std::int64_t fused_peak_bytes = peak_of(fused);
  if (device.kind == Device::Kind::cpu) result.fused_peak_bytes = fused_peak_bytes;
  result.fused = measure_on(device, mirror, runs, budget_s, fused);
  mirror.fetch();

  const Array q32 = converted(q, DType::float32), k32 = converted(k, DType::float32);
  const Array v32 = converted(v, DType::float32);
  const Array o32 = converted(o, DType::float32);
  const int manual_threads = device.kind == Device::Kind::cpu
                                 ? result.plan.threads
                                 : value_of(cpu_capabilities(threads)).threads;
  std::vector<ManualRun> manual_runs;
  result.manual_peak_bytes = peak_of([&] {
    Manual manual(problem, q32, k32, v32, manual_threads);
    result.manual_bytes = manual.bytes();
    const auto run = [&] { manual_runs.push_back(manual.run(o32.data<float>())); };
    result.manual_runs = measure(runs, budget_s, run).runs;
  });
  manual_runs.erase(manual_runs.begin());  // the one that warmed up
  std::sort(manual_runs.begin(), manual_runs.end(),
            [](const ManualRun& a, const ManualRun& b) { return a.seconds() < b.seconds(); });
  result.manual = manual_runs[(manual_runs.size() - 1) / 2];
  result.difference = largest_difference(o, o32.view);
  return result;
}

}  // namespace onepass::cli
