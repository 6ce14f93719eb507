// One backward call described once, for the library and for the reference alike.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "conformance/call.h"
#include "reference/backward.h"

namespace onepass::conformance {

struct BackwardCall {
  Call call;
  reference::Tensor dout;    // of o's shape; values of dout_dtype
  std::vector<double> dlse;  // of lse's shape; none = 0
  DType dout_dtype = DType::float32;
  DType gradient_dtype = DType::float32;  // of dq, dk and dv
  Layout dout_layout = Layout::seq_major, dq_layout = Layout::seq_major;
  Layout dk_layout = Layout::seq_major, dv_layout = Layout::seq_major;
  /// Float array arguments of the score whose gradients are asked for.
  std::vector<std::string> dargs;

  /// As Call::line, with the backward's own layouts.
  std::string line() const;
};

/// With dout = G(4, 1), everything in the call's dtype.
BackwardCall backward_of(const Call& call);

/// What the library answered, in logical order.
struct Gradients {
  Answer forward;
  bool ran = false;
  std::string error;  // why it did not run
  Code code = Code::ok;
  std::string kernel;
  std::vector<double> dq, dk, dv, dsink;
  std::map<std::string, std::vector<double>> dargs;
  bool guards_held = true;
  bool outputs_kept = false;
};

/// Runs the library's backward from o and lse of `forward`.
Gradients run_backward(const BackwardCall& call, Answer forward, int threads, Device device = {});
/// Runs the library's forward and, from what it gave, its backward.
Gradients run(const BackwardCall& call, int threads, Device device = {});

/// The gradients in float64, by a plain unfused kernel of the call's dtype, and the sums of the
/// absolute terms.
reference::Gradients reference_gradients(const BackwardCall& call);
reference::Gradients plain_gradients(const BackwardCall& call);
reference::Gradients absolute_terms(const BackwardCall& call);

}  // namespace onepass::conformance
