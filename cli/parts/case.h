// A problem line made real: tensors with seeded values, and the options that go with them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/parts/array.h"
#include "conformance/mirror.h"
#include "core/problem_line.h"
#include "onepass/backward.h"
#include "onepass/kv_cache.h"

namespace onepass::cli {

struct Case {
  Pass pass = Pass::forward;
  TensorView q, k, v, o;         // k and v of a cache: as one tensor (b, capacity, h_kv, d)
  std::optional<KvCache> cache;  // where the line has pages
  Backward backward;             // of a bwd line: lse, dout and every gradient but of arguments
  Attention options;             // its views point into `arrays`
  std::vector<Array> arrays;     // everything the views see
};

/// What the line asks for: forward or backward. Throws Error.
Problem problem_of(const Case& made);
Plan plan_of(const Case& made, int threads);
/// The plan with its kernels compiled and loaded, so that it says whether they spill.
Plan prepared_of(const Case& made, int threads);
void run_call(const Case& made, const Exec& exec);
/// The forward that a backward needs; nothing for a forward.
void run_before(const Case& made, int threads);

/// q, k, v and dout get normal random values, arguments what the line says. `with_tensors = false`
/// leaves q, k, v, o, lse and sink without memory, which is enough to plan. Throws Error.
Case make_case(const ProblemLine& line, bool with_tensors, std::uint64_t seed = 0);

/// Parses words of a command line; `device` is --device, empty = as the line says. Throws Error.
ProblemLine line_on(const std::string& device, const std::vector<std::string>& words);

/// The case as its line's device has it, without any memory there: enough to plan.
Case planned_on(Device device, Case made);

/// The case with its tensors on the mirror's device.
Case placed_on(conformance::Mirror& mirror, Case made);

/// Visits every tensor that lies where the call runs. Lengths, offsets, positions and pages do not:
/// the host reads them.
void each_tensor(Case& made, const std::function<void(TensorView&)>& visit);

/// Throws Error, with what is missing, where the device is not here.
void require_device(Device device);

/// Normal values, the same on every machine for a seed.
void fill_normal(const TensorView& contiguous, std::uint64_t seed);

/// What q, k, v and o of a line take. A double, because the sizes multiply beyond 64 bits.
double tensor_bytes(const ProblemLine& line);

/// The same and the float64 copies that an answer is checked with.
double checked_tensor_bytes(const ProblemLine& line);

/// The line that words of a command line spell; quotes that the shell took off are put back.
std::string join_line(const std::vector<std::string>& words);

}  // namespace onepass::cli
