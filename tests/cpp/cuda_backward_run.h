// The backward of a CPU case on a GPU, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "cpu_backward_case.h"
#include "device_memory.h"

namespace onepass::cuda_test {

using cpu_test::BackwardRun;
using cpu_test::Buffer;

inline constexpr Device gpu{Device::Kind::cuda, 0};
inline constexpr std::size_t guard_bytes = 64;

/// Copies of a run's tensors on the GPU.
class OnGpu {
 public:
  /// What the call reads.
  TensorView input(const Buffer& buffer, const TensorView& view) {
    if (!view.given()) return view;
    std::vector<unsigned char> bytes = buffer.bytes();
    bytes.resize(bytes.size() + guard_bytes);  // never empty
    return moved(bytes, buffer.bytes().data(), view);
  }

  TensorView array(const TensorView& view) {
    const auto* first = static_cast<const unsigned char*>(view.data);
    const std::vector<unsigned char> bytes(first, first + view.elements() * size_bytes(view.dtype));
    return moved(bytes, first, view);
  }

  /// What it writes: NaN, with bytes after it that must stay.
  TensorView output(Buffer& buffer, const TensorView& view) {
    if (!view.given()) return view;
    const std::vector<unsigned char> bytes(buffer.bytes().size() + guard_bytes, 0xff);
    const TensorView out = moved(bytes, buffer.bytes().data(), view);
    outputs_.push_back({&buffer, memory_.size() - 1});
    return out;
  }

  void read_back() {
    for (const auto& [buffer, index] : outputs_) {
      const std::vector<unsigned char> bytes = memory_[index].values<unsigned char>();
      const std::size_t size = buffer->bytes().size();
      if (size > 0) std::memcpy(buffer->data(), bytes.data(), size);
      for (std::size_t i = size; i < bytes.size(); ++i) {
        ASSERT_EQ(bytes[i], 0xff) << "written beyond";
      }
    }
  }

 private:
  TensorView moved(const std::vector<unsigned char>& bytes, const unsigned char* host,
                   TensorView view) {
    const std::ptrdiff_t offset = static_cast<const unsigned char*>(view.data) - host;
    memory_.emplace_back(bytes);
    view.data = static_cast<unsigned char*>(memory_.back().data()) + offset;
    view.device = gpu;
    return view;
  }

  std::deque<DeviceMemory> memory_;
  std::vector<std::pair<Buffer*, std::size_t>> outputs_;
};

/// The backward on the GPU after the forward on the CPU.
inline void run_on_gpu(BackwardRun& run) {
  OnGpu to;
  const Backward& host = run.backward;
  Backward backward;
  backward.o = to.input(run.call.o, host.o);
  backward.lse = to.input(run.call.lse, host.lse);
  backward.dout = to.input(run.dout, host.dout);
  backward.dlse = to.input(run.dlse, host.dlse);
  backward.dq = to.output(run.dq, host.dq);
  backward.dk = to.output(run.dk, host.dk);
  backward.dv = to.output(run.dv, host.dv);
  backward.dsink = to.output(run.dsink, host.dsink);
  for (std::size_t i = 0; i < host.dargs.size(); ++i) {
    backward.dargs.push_back({host.dargs[i].name, to.output(run.dargs[i], host.dargs[i].gradient)});
  }
  Attention options = run.call.c.options;
  for (Argument& argument : options.args) {
    if (auto* array = std::get_if<TensorView>(&argument.value)) *array = to.array(*array);
  }
  if (run.call.c.with_sink) options.sink = to.input(run.call.sink, run.call.sink_view);
  attention_backward(to.input(run.call.q, run.call.q_view), to.input(run.call.k, run.call.k_view),
                     to.input(run.call.v, run.call.v_view), backward, options);
  to.read_back();
}

}  // namespace onepass::cuda_test
