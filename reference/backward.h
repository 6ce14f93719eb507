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

/// Gradients of <dout, o> + <dlse, lse>, with dout of o's shape and dlse of lse's, or empty for 0.
/// Throws std::invalid_argument.
Gradients attention_backward(const Tensor& dout, const Tensor& q, const Tensor& k, const Tensor& v,
                             const Options& options = {}, const std::vector<double>& dlse = {});

/// The same by a plain unfused kernel for inputs of `format`: float32 scores and sums (float64 for
/// float64); o, the weights and the gradients of the logits rounded to `format` where they are read
/// again. Its error is the yardstick of 16-bit tolerances.
Gradients plain_backward(Format format, const Tensor& dout, const Tensor& q, const Tensor& k,
                         const Tensor& v, const Options& options = {},
                         const std::vector<double>& dlse = {});

/// What the sums of attention_backward would be if every term had its absolute value: by how much
/// more than the result its terms are, where they cancel.
Gradients absolute_terms(const Tensor& dout, const Tensor& q, const Tensor& k, const Tensor& v,
                         const Options& options = {}, const std::vector<double>& dlse = {});

}  // namespace onepass::reference
