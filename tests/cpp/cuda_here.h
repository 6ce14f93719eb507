// What of CUDA is on this machine; tests skip what is not, with the reason.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "cuda/nvrtc.h"
#include "onepass/plan.h"

namespace onepass {

inline constexpr Device gpu{Device::Kind::cuda, 0};

/// As a card says of itself, for plans and compilations that need none.
inline Capabilities card(int sm, int multiprocessors = 100, std::int64_t shared_bytes = 101376) {
  Capabilities capabilities;
  capabilities.device = gpu;
  capabilities.sm = sm, capabilities.multiprocessors = multiprocessors;
  capabilities.shared_bytes = shared_bytes;
  return capabilities;
}
inline Capabilities h200() { return card(90, 132, 232448); }

/// A kernel `name` whose 400 sums of 4 bytes 255 registers do not hold.
inline std::string spilling_source(const std::string& name) {
  return "extern \"C\" __global__ void " + name + R"((float* p, int n) {
  float sum[400];
#pragma unroll
  for (int i = 0; i < 400; ++i) sum[i] = p[i];
  for (int j = 0; j < n; ++j) {
#pragma unroll
    for (int i = 0; i < 400; ++i) sum[i] = sum[i] * sum[i] + p[j];
  }
#pragma unroll
  for (int i = 0; i < 400; ++i) p[i] = sum[i];
})";
}

}  // namespace onepass

#define ONEPASS_NEED_NVRTC \
  if (!onepass::cuda::nvrtc().ok()) GTEST_SKIP() << onepass::cuda::nvrtc().status().message

#define ONEPASS_NEED_GPU                                          \
  if (const auto here = onepass::cuda_capabilities(); !here.ok()) \
  GTEST_SKIP() << here.status().message
