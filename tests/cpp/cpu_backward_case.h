// A small backward on the CPU with every buffer it needs, and the float64 reference beside it.
#pragma once

#include <string>
#include <vector>

#include "cpu_case.h"
#include "onepass/backward.h"
#include "reference/backward.h"

namespace onepass::cpu_test {

struct BackwardCase {
  Case forward;  // `visible`, `score` and `kept` are not used
  bool with_dlse = false;
  DType gradient_dtype = DType::float32;  // of dq, dk, dv
};

/// What a failure says of it.
std::string text_of(const BackwardCase& c);

/// Each size 0 in turn.
std::vector<BackwardCase> cases_of_size_zero();

/// The forward runs first, on the instruction set of the scope. Gradients are filled with NaN.
struct BackwardRun {
  explicit BackwardRun(const BackwardCase& c, unsigned seed = 1);
  void run(int threads = 1);
  reference::Gradients expected() const;
  /// By a plain unfused computation in the inputs' dtype.
  reference::Gradients plain() const;

  Call call;
  Buffer dout, dlse, dq, dk, dv, dsink;
  std::vector<Buffer> dargs;  // of every float array among the arguments
  Backward backward;          // its views point at the buffers; a test may change them
};

/// Makes b = 1 into packed sequences of these lengths.
void pack(BackwardRun& run, std::vector<std::int32_t>& cu_seqlens_q,
          std::vector<std::int32_t>& cu_seqlens_k);

/// The call as the reference takes it.
reference::Options reference_options(const Call& call);
reference::Tensor reference_tensor(const Buffer& buffer, const TensorView& view);

/// Largest error over the largest value of each gradient; +inf where a NaN is wrong.
struct Errors {
  double dq = 0.0, dk = 0.0, dv = 0.0, dsink = 0.0, dargs = 0.0;
  double largest() const;
};
Errors errors_of(const BackwardRun& run, const reference::Gradients& want);
/// The same of a plain computation's array gradients: sums whose terms cancel keep no more.
double plain_dargs_error(const BackwardRun& run, const reference::Gradients& want);

}  // namespace onepass::cpu_test
