// The thread pool: every item once, nested and concurrent loops, fork, OMP_NUM_THREADS.
#include "cpu/threads.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

#include "cpu/isa.h"

namespace onepass::cpu {
namespace {

// Sums 1..items over a loop; also that no thread number is out of range or used twice at once.
bool sums_right(int threads, std::int64_t items) {
  std::vector<std::atomic<int>> busy(static_cast<std::size_t>(threads));
  std::atomic<std::int64_t> sum{0};
  std::atomic<bool> right{true};
  parallel_for(threads, items, [&](std::int64_t item, int thread) {
    if (thread < 0 || thread >= threads) {
      right = false;
      return;
    }
    if (busy[static_cast<std::size_t>(thread)].fetch_add(1) != 0) right = false;
    sum += item + 1;
    busy[static_cast<std::size_t>(thread)].fetch_sub(1);
  });
  return right && sum == items * (items + 1) / 2;
}

TEST(CpuThreads, EveryItemOnce) {
  for (const int threads : {1, 2, 5, 16}) {
    for (const std::int64_t items : {0, 1, 2, 3, 100, 5000}) {
      EXPECT_TRUE(sums_right(threads, items)) << threads << " " << items;
    }
  }
}

TEST(CpuThreads, AllOfThemTakePart) {
  std::atomic<int> arrived{0};
  // Each item waits until all four run at once: with fewer threads this would run into the limit.
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  parallel_for(4, 4, [&](std::int64_t, int) {
    ++arrived;
    while (arrived < 4 && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
  });
  EXPECT_LT(std::chrono::steady_clock::now(), limit);
}

TEST(CpuThreads, ALoopInsideALoopIsSerial) {
  std::atomic<int> total{0};
  std::atomic<bool> serial{true};
  parallel_for(3, 6, [&](std::int64_t, int) {
    if (usable_threads(8) != 1) serial = false;
    const std::thread::id here = std::this_thread::get_id();
    parallel_for(4, 10, [&](std::int64_t, int thread) {
      if (thread != 0 || std::this_thread::get_id() != here) serial = false;
      ++total;
    });
  });
  EXPECT_TRUE(serial);
  EXPECT_EQ(total, 60);
  EXPECT_EQ(usable_threads(8), 8);  // outside again
}

TEST(CpuThreads, SeveralCallersAtOnce) {
  std::vector<std::thread> callers;
  std::atomic<int> right{0};
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) right += sums_right(3, 200);
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(right, 200);
}

TEST(CpuThreads, AForkedChildHasThreadsOfItsOwn) {
#ifdef ONEPASS_UNDER_QEMU
  GTEST_SKIP() << "qemu-user aborts when a forked child starts threads (plugins/core.c assertion)";
#endif
  ASSERT_TRUE(sums_right(4, 1000));  // the parent's pool exists
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(30);  // a child that waits for the parent's threads ends here
    _exit(sums_right(4, 1000) && sums_right(2, 7) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(sums_right(4, 1000));
}

TEST(CpuThreads, IdleThreadsSleep) {
  ASSERT_TRUE(sums_right(4, 100));
  const std::clock_t before = std::clock();  // of the whole process
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC, 0.1);
}

TEST(CpuThreads, CountComesFromTheCallThenTheEnvironment) {
  setenv("OMP_NUM_THREADS", "3,2", 1);
  EXPECT_EQ(usable_threads(0), 3);
  EXPECT_EQ(usable_threads(5), 5);
  setenv("OMP_NUM_THREADS", "no number", 1);
  EXPECT_GE(usable_threads(0), 1);
  unsetenv("OMP_NUM_THREADS");
  EXPECT_GE(usable_threads(0), 1);
}

TEST(CpuIsa, OnlyWhatIsHereCanBeForced) {
  for (const Isa isa : detected_isas()) {
    setenv("ONEPASS_ISA", name(isa), 1);
    const Result<Capabilities> forced = cpu_capabilities();
    ASSERT_TRUE(forced.ok()) << name(isa);
    EXPECT_EQ(forced.value().isas.back(), isa);
    EXPECT_EQ(forced.value().isas.size(), isa == Isa::avx512_bf16 ? 2U : 1U);
  }
#if defined(__x86_64__)
  const char* missing = "neon";
#else
  const char* missing = "avx2";
#endif
  for (const char* wrong : {missing, "sse9"}) {
    setenv("ONEPASS_ISA", wrong, 1);
    const Result<Capabilities> refused = cpu_capabilities();
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.status().message.rfind("ONEPASS_ISA: " + std::string(wrong), 0), 0U);
  }
  unsetenv("ONEPASS_ISA");
  EXPECT_TRUE(cpu_capabilities().ok());
}

}  // namespace
}  // namespace onepass::cpu
