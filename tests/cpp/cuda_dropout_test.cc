// dropout_mask() on a GPU: the CPU's bits, the caller's stream and context. Needs a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "cuda_here.h"
#include "device_memory.h"
#include "onepass/backward.h"

namespace onepass {
namespace {

const Dropout dropout{
    .p = 0.37, .seed = 0x123456789abcdefULL, .offset = 77, .row0 = 16, .col0 = 48};

struct MaskCase {
  std::array<std::int64_t, 4> shape, strides;
  std::size_t bytes, first;  // of the memory, and where element (0, 0, 0, 0) lies
};

constexpr std::uint8_t untouched = 0xa5;

TensorView view(const MaskCase& c, std::uint8_t* data, Device device) {
  return {data + c.first, DType::uint8, c.shape, c.strides, device};
}

std::vector<std::uint8_t> on_cpu(const MaskCase& c, const Dropout& how) {
  std::vector<std::uint8_t> bytes(c.bytes, untouched);
  dropout_mask(view(c, bytes.data(), {}), how);
  return bytes;
}

std::vector<std::uint8_t> on_gpu(const MaskCase& c, const Dropout& how, int device = 0) {
  const DeviceMemory memory(std::vector<std::uint8_t>(c.bytes, untouched));
  dropout_mask(view(c, static_cast<std::uint8_t*>(memory.data()), {Device::Kind::cuda, device}),
               how);
  return memory.values<std::uint8_t>();
}

MaskCase contiguous(std::int64_t b, std::int64_t h, std::int64_t rows, std::int64_t cols) {
  return {{b, h, rows, cols},
          {h * rows * cols, rows * cols, cols, 1},
          static_cast<std::size_t>(b * h * rows * cols) + 64,
          32};
}

TEST(CudaDropout, SameBitsAsTheCpu) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  for (const MaskCase& c :
       {contiguous(1, 1, 1, 1), contiguous(2, 3, 65, 127), contiguous(1, 2, 8, 16),
        contiguous(70000, 1, 2, 3), contiguous(1, 70000, 3, 2), contiguous(1, 1, 3000, 1000),
        MaskCase{{2, 3, 20, 30}, {1, 2, -150, 5 * 1000}, 200000, 19 * 150 + 7}}) {
    for (const Dropout& how : {dropout, Dropout{.p = 0.0}, Dropout{.p = 1.0 - 1e-12, .seed = 3},
                               Dropout{.p = 0.5,
                               .seed = ~0ULL,
                               .offset = ~0ULL,
                               .row0 = std::int64_t{1} << 33,
                               .col0 = 1600}}) {
      const std::vector<std::uint8_t> cpu = on_cpu(c, how);
      ASSERT_EQ(on_gpu(c, how), cpu) << c.shape[0] << " " << c.shape[1] << " " << c.shape[2];
      EXPECT_EQ(cpu[0], untouched);
    }
  }
  const MaskCase empty = contiguous(2, 0, 5, 5);
  EXPECT_EQ(on_gpu(empty, dropout), std::vector<std::uint8_t>(64, untouched));
}

TEST(CudaDropout, LeavesTheContextAsItWas) {
  ONEPASS_NEED_GPU;
  const MaskCase c = contiguous(1, 1, 16, 16);
  void* other = nullptr;
  {
    const TestContext context;
    EXPECT_EQ(on_gpu(c, dropout), on_cpu(c, dropout));
    EXPECT_EQ(TestContext::current(), context.context());
    // A context of the caller's own: memory of it is written.
    TestDriver::call("cuCtxCreate_v2", &other, 0U, 0);
    EXPECT_EQ(on_gpu(c, dropout), on_cpu(c, dropout));
    EXPECT_EQ(TestContext::current(), other);
    TestDriver::call("cuCtxDestroy_v2", other);
    const DeviceMemory memory(c.bytes);
    const TensorView mask =
        view(c, static_cast<std::uint8_t*>(memory.data()), {Device::Kind::cuda, 0});
    // A thread without one: the device's primary context, and none again afterwards.
    std::thread([&] {
      EXPECT_EQ(TestContext::current(), nullptr);
      dropout_mask(mask, dropout);
      EXPECT_EQ(TestContext::current(), nullptr);
    }).join();
    const std::vector<std::uint8_t> gpu = memory.values<std::uint8_t>(), cpu = on_cpu(c, dropout);
    EXPECT_TRUE(std::equal(gpu.begin() + 32, gpu.end() - 32, cpu.begin() + 32));
  }
}

TEST(CudaDropout, RunsOnTheCallersStreamAndInGraphs) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  const MaskCase c = contiguous(1, 2, 33, 65);
  const std::vector<std::uint8_t> before(c.bytes, untouched);
  const DeviceMemory memory(before);
  const TensorView mask =
      view(c, static_cast<std::uint8_t*>(memory.data()), {Device::Kind::cuda, 0});
  EXPECT_EQ(on_gpu(c, dropout), on_cpu(c, dropout));  // prepares it
  void *stream = nullptr, *graph = nullptr, *ready = nullptr;
  TestDriver::call("cuStreamCreate", &stream, 1U);  // non-blocking
  // Captured, so that nothing runs yet: only a launch on this stream gets into the graph.
  TestDriver::call("cuStreamBeginCapture_v2", stream, 2);
  dropout_mask(mask, dropout, {.stream = stream});
  TestDriver::call("cuStreamEndCapture", stream, &graph);
  EXPECT_EQ(memory.values<std::uint8_t>(), before);
  TestDriver::call("cuGraphInstantiateWithFlags", &ready, graph, 0ULL);
  TestDriver::call("cuGraphLaunch", ready, stream);
  TestDriver::call("cuStreamSynchronize", stream);
  EXPECT_EQ(memory.values<std::uint8_t>(), on_cpu(c, dropout));
  TestDriver::call("cuGraphExecDestroy", ready);
  TestDriver::call("cuGraphDestroy", graph);
  TestDriver::call("cuStreamDestroy_v2", stream);
}

TEST(CudaDropout, FromManyThreads) {
  ONEPASS_NEED_GPU;
  const MaskCase c = contiguous(1, 2, 100, 100);
  const std::vector<std::uint8_t> cpu = on_cpu(c, dropout);
  std::vector<std::thread> threads;
  std::array<std::vector<std::uint8_t>, 8> seen;
  for (std::vector<std::uint8_t>& one : seen) {
    threads.emplace_back([&] {
      const TestContext context;
      one = on_gpu(c, dropout);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<std::uint8_t>& one : seen) EXPECT_EQ(one, cpu);
}

TEST(CudaDropout, OnASecondDeviceWhileTheFirstIsCurrent) {
  ONEPASS_NEED_GPU;
  if (!cuda_capabilities(1).ok()) GTEST_SKIP() << cuda_capabilities(1).status().message;
  const MaskCase c = contiguous(2, 2, 50, 70);
  const TestContext first(0);
  const TestContext second(1);
  const DeviceMemory memory(c.bytes);
  {
    const TestContext again(0);
    dropout_mask(view(c, static_cast<std::uint8_t*>(memory.data()), {Device::Kind::cuda, 1}),
                 dropout);
    EXPECT_EQ(TestContext::current(), first.context());
    EXPECT_EQ(on_gpu(c, dropout, 0), on_cpu(c, dropout));
  }
  const std::vector<std::uint8_t> gpu = memory.values<std::uint8_t>(), cpu = on_cpu(c, dropout);
  EXPECT_TRUE(std::equal(gpu.begin() + 32, gpu.end() - 32, cpu.begin() + 32));
}

TEST(CudaDropout, RefusesWhatTheCpuRefuses) {
  const MaskCase c = contiguous(1, 1, 16, 16);
  TensorView mask = view(c, nullptr, {Device::Kind::cuda, 0});
  mask.data = nullptr;
  EXPECT_THROW(dropout_mask(mask, dropout), Error);
  mask.dtype = DType::float32;
  EXPECT_THROW(dropout_mask(mask, dropout), Error);
}

TEST(CudaDropout, WithoutAGpuSaysWhatIsMissing) {
  if (cuda_capabilities().ok()) GTEST_SKIP() << "a GPU is here";
  const MaskCase c = contiguous(1, 1, 16, 16);
  std::vector<std::uint8_t> bytes(c.bytes, untouched);
  try {
    dropout_mask(view(c, bytes.data(), {Device::Kind::cuda, 0}), dropout);
    FAIL() << "it ran";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("cuda: "), std::string::npos) << error.what();
  }
  EXPECT_EQ(bytes, std::vector<std::uint8_t>(c.bytes, untouched));
}

}  // namespace
}  // namespace onepass
