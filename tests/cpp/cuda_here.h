// What of CUDA is on this machine; tests skip what is not, with the reason.
#pragma once

#include <gtest/gtest.h>

#include "cuda/nvrtc.h"
#include "onepass/plan.h"

#define ONEPASS_NEED_NVRTC \
  if (!onepass::cuda::nvrtc().ok()) GTEST_SKIP() << onepass::cuda::nvrtc().status().message

#define ONEPASS_NEED_GPU                                          \
  if (const auto here = onepass::cuda_capabilities(); !here.ok()) \
  GTEST_SKIP() << here.status().message
