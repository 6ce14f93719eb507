// What a call costs beside its launches, and what may be captured into a graph. Needs a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include "core/prepare.h"
#include "cuda/driver.h"
#include "cuda/kernel.h"
#include "cuda_here.h"
#include "device_memory.h"
#include "onepass/onepass.h"

namespace onepass {
namespace {

// One sequence of few rows in float32: its kernels take next to no time.
struct SmallCall {
  explicit SmallCall(const Attention& given = {}) : options(given) { options.lse = lse; }

  TensorView tensor(std::initializer_list<std::int64_t> shape) {
    std::int64_t elements = 1;
    for (const std::int64_t size : shape) elements *= size;
    std::vector<float> values(static_cast<std::size_t>(elements));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = 0.01f * static_cast<float>(i * 37 % 101);
    }
    memory.emplace_back(values);
    return {
        memory.back().data(), DType::float32, {shape.begin(), shape.size()}, strides(shape), gpu};
  }
  static std::vector<std::int64_t> strides(std::initializer_list<std::int64_t> shape) {
    std::vector<std::int64_t> all(shape.size(), 1);
    for (std::size_t i = shape.size() - 1; i-- > 0;) all[i] = all[i + 1] * shape.begin()[i + 1];
    return all;
  }
  void forward(void* stream = nullptr) { attention(q, k, v, o, options, {.stream = stream}); }
  void backward(void* stream = nullptr) {
    attention_backward(q, k, v, gradients(), options, {.stream = stream});
  }
  Backward gradients() const {
    Backward all;
    all.o = o, all.lse = lse, all.dout = dout;
    all.dq = dq, all.dk = dk, all.dv = dv;
    return all;
  }

  std::deque<DeviceMemory> memory;
  TensorView q = tensor({1, 8, 2, 64}), k = tensor({1, 8, 2, 64}), v = tensor({1, 8, 2, 64});
  TensorView o = tensor({1, 8, 2, 64}), lse = tensor({1, 2, 8}), dout = tensor({1, 8, 2, 64});
  TensorView dq = tensor({1, 8, 2, 64}), dk = tensor({1, 8, 2, 64}), dv = tensor({1, 8, 2, 64});
  Attention options;
};

// Host time of one call in microseconds: batches that the stream's queue holds, the median of many.
double microseconds(const std::function<void()>& call) {
  constexpr int batch = 50, batches = 60;
  std::vector<double> each;
  for (int i = 0; i < batches; ++i) {
    const auto start = std::chrono::steady_clock::now();
    for (int j = 0; j < batch; ++j) call();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    each.push_back(seconds.count() * 1e6 / batch);
    TestDriver::call("cuCtxSynchronize");
  }
  std::sort(each.begin(), each.end());
  return each[each.size() / 2];
}

TEST(CudaLaunch, AWarmCallCostsLittleMoreThanItsLaunch) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  Attention causal, scored;
  causal.mask = "causal";
  scored.mask = "window(20, 3) & k % 3 != 1", scored.score = "softcap(s, 30)";
  for (const Attention& options : {Attention{}, causal, scored}) {
    SmallCall call(options);
    call.forward();
    const Plan plan = prepare(call.q, call.k, call.v, call.o, call.options);
    ASSERT_EQ(plan.kernels.size(), 1U);
    // Its struct all zeros: nothing to do.
    std::vector<std::byte> nothing(4096);
    void* arguments[] = {nothing.data()};
    const cuda::Driver& driver = cuda::driver().value();
    const auto launch = [&] {
      driver.launch_kernel(plan.kernels[0]->handle, 4, 1, 1, 128, 1, 1, 0, nullptr, arguments,
                           nullptr);
    };
    const double bare = microseconds(launch), whole = microseconds([&] { call.forward(); });
    std::printf("%s %s: bare launch %.2f us, attention() %.2f us\n", options.mask.c_str(),
                options.score.c_str(), bare, whole);
    EXPECT_LT(whole, bare + 10.0) << options.mask;  // machines are noisy
  }
}

// What one thread's earlier calls left must not reach a call with other arrays, seed or alignment.
TEST(CudaLaunch, RepeatedCallsUseTheirOwnAddresses) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  const auto made = [](std::uint64_t seed, float first) {
    auto call = std::make_unique<SmallCall>();
    call->memory.emplace_back(std::vector<float>{first, 2, 3, 4, 5, 6, 7, 8});
    call->options.score = "s + x[col]";
    call->options.args = {{"x", TensorView(call->memory.back().data(), DType::float32, {8}, gpu)}};
    call->options.dropout = {.p = 0.3, .seed = seed};
    return call;
  };
  const auto results = [](SmallCall& call) {
    std::vector<std::vector<float>> all;
    for (const DeviceMemory& one : call.memory) all.push_back(one.values<float>());
    return all;
  };
  const std::pair<std::uint64_t, float> kinds[] = {{1, 0.0f}, {1, 9.0f}, {2, 0.0f}};
  std::vector<std::vector<std::vector<float>>> here, fresh(std::size(kinds));
  for (const auto& [seed, first] : kinds) {
    const auto call = made(seed, first);
    call->forward(), call->backward();
    here.push_back(results(*call));
  }
  for (std::size_t i = 0; i < std::size(kinds); ++i) {
    std::thread([&] {  // nothing to repeat
      const TestContext of_thread;
      const auto call = made(kinds[i].first, kinds[i].second);
      call->forward(), call->backward();
      fresh[i] = results(*call);
    })
        .join();
    EXPECT_EQ(here[i], fresh[i]) << i;
  }
  EXPECT_NE(here[0], here[1]);
  EXPECT_NE(here[0], here[2]);
  const auto call = made(1, 0.0f);
  call->forward();
  call->q.data = nullptr;
  EXPECT_THROW(call->forward(), Error);
}

// Both passes in a graph, the backward's workspace too.
TEST(CudaLaunch, PreparedCallsAreCaptured) {
  ONEPASS_NEED_GPU;
  const TestContext context;
  Attention options;
  options.mask = "k <= q + 1 & k % 5 != 3";  // nobody else's configuration
  SmallCall call(options), twin(options);
  void *stream = nullptr, *graph = nullptr, *ready = nullptr;
  TestDriver::call("cuStreamCreate", &stream, 1U);
  const auto capture = [&](const std::function<void()>& work) {
    TestDriver::call("cuStreamBeginCapture_v2", stream, 0);  // the strictest mode
    work();
    TestDriver::call("cuStreamEndCapture", stream, &graph);
  };
  capture([&] {
    try {
      call.forward(stream);
      ADD_FAILURE() << "ran";
    } catch (const Error& error) {
      EXPECT_EQ(error.code, Code::not_prepared);
      EXPECT_NE(std::string(error.what()).find("stream: is being captured"), std::string::npos);
    }
  });
  TestDriver::call("cuGraphDestroy", graph);
  EXPECT_FALSE(prepare(call.q, call.k, call.v, call.o, call.options).kernels.empty());
  const Plan plan = prepare_backward(call.q, call.k, call.v, call.gradients(), call.options);
  EXPECT_GE(plan.kernels.size(), 3U);
  EXPECT_GT(plan.workspace_bytes, 0);
  capture([&] { call.forward(stream), call.backward(stream); });
  TestDriver::call("cuGraphInstantiateWithFlags", &ready, graph, 0ULL);
  for (int i = 0; i < 2; ++i) TestDriver::call("cuGraphLaunch", ready, stream);
  TestDriver::call("cuStreamSynchronize", stream);
  twin.forward(), twin.backward();
  for (std::size_t i = 0; i < call.memory.size(); ++i) {
    EXPECT_EQ(call.memory[i].values<float>(), twin.memory[i].values<float>()) << i;
  }
  TestDriver::call("cuGraphExecDestroy", ready);
  TestDriver::call("cuGraphDestroy", graph);
  TestDriver::call("cuStreamDestroy_v2", stream);
}

}  // namespace
}  // namespace onepass
