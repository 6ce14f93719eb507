// The gradients of attention by the book in float64.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "reference/attention.h"

namespace onepass::reference {

struct Gradients {
  Tensor dq, dk, dv;          // of the shapes of q, k, v
  std::vector<double> dsink;  // one for each query head; empty without a sink
  /// Of every argument that is a float array, in its own shape, row-major; 0 where no score reads.
  std::map<std::string, std::vector<double>> darguments;
};

/// Gradients of <dout, o> + <dlse, lse>, with dout (b, s_q, h_q, d_v) and dlse (b, h_q, s_q) or
/// empty for 0. Throws std::invalid_argument.
Gradients attention_backward(const Tensor& dout, const Tensor& q, const Tensor& k, const Tensor& v,
                             const Options& options = {}, const std::vector<double>& dlse = {});

}  // namespace onepass::reference
