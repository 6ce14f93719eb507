// The disk cache of compiled kernels: damage, foreign files and unwritable places only cost it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "cuda/digest.h"
#include "cuda/disk_cache.h"
#include "cuda/kernel_text.h"
#include "cuda/machine_code.h"
#include "cuda_here.h"
#include "scoped_variable.h"

namespace onepass::cuda {
namespace {

namespace fs = std::filesystem;

class CudaCache : public testing::Test {
 protected:
  void SetUp() override {
    const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
    base_ = fs::path(testing::TempDir()) /
            ("onepass_" + std::string(info->name()) + "_" + std::to_string(getpid()));
    fs::remove_all(base_);
    fs::create_directories(base_);
    folder_ = base_ / "new" / "cache";
  }
  void TearDown() override { fs::remove_all(base_); }

  DiskCache cache() const { return DiskCache(folder_.string()); }
  fs::path file(const std::string& key) const { return folder_ / (digest(key) + ".cubin"); }
  static mode_t mode(const fs::path& path) {
    struct stat status {};
    return stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
  }
  std::size_t files() const {
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator(folder_)) count += entry.exists();
    return count;
  }

  fs::path base_, folder_;
  const Compiled code_{.cubin = std::string("\x7f"
                                            "ELF\0 machine code",
                                            18),
                       .log = "no spills"};
};

TEST(CudaDigest, PublishedValues) {
  EXPECT_EQ(digest(""), "6c62272e07bb014262b821756295c58d");
  EXPECT_EQ(digest("a"), "d228cb696f1a8caf78912b704e4a8964");
  EXPECT_EQ(digest("foobar"), "343e1662793c64bf6f0d3597ba446f18");
}

TEST_F(CudaCache, KeepsWhatWasWritten) {
  EXPECT_FALSE(cache().read("key"));
  ASSERT_TRUE(cache().write("key", code_));
  const std::optional<Compiled> kept = cache().read("key");
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->cubin, code_.cubin);
  EXPECT_EQ(kept->log, code_.log);
  EXPECT_FALSE(cache().read("other key"));
  EXPECT_EQ(mode(folder_), 0700U);
  EXPECT_EQ(mode(file("key")), 0600U);
  EXPECT_EQ(files(), 1U);
}

TEST_F(CudaCache, EveryDamagedByteAndEveryCutIsSeen) {
  ASSERT_TRUE(cache().write("key", code_));
  std::string bytes;
  {
    std::ifstream in(file("key"), std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  const auto put = [&](const std::string& content) {
    std::ofstream(file("key"), std::ios::binary | std::ios::trunc) << content;
  };
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    put(damaged);
    EXPECT_FALSE(cache().read("key")) << "byte " << i;
    put(bytes.substr(0, i));
    EXPECT_FALSE(cache().read("key")) << "cut at " << i;
  }
  put(bytes + "x");
  EXPECT_FALSE(cache().read("key"));
  ASSERT_TRUE(cache().write("key", code_));
  EXPECT_TRUE(cache().read("key"));
}

// Two keys of one digest cannot be made here, but a file under the wrong name can.
TEST_F(CudaCache, AFileOfAnotherKeyIsNotUsed) {
  ASSERT_TRUE(cache().write("other key", code_));
  fs::rename(file("other key"), file("key"));
  EXPECT_FALSE(cache().read("key"));
}

TEST_F(CudaCache, WhatOthersMayWriteIsNotTrusted) {
  ASSERT_TRUE(cache().write("key", code_));
  chmod(file("key").c_str(), 0666);
  EXPECT_FALSE(cache().read("key"));
  chmod(file("key").c_str(), 0600);
  ASSERT_TRUE(cache().read("key"));
  chmod(folder_.c_str(), 0777);
  EXPECT_FALSE(cache().read("key"));
  EXPECT_FALSE(cache().write("key", code_));
}

TEST_F(CudaCache, ALinkOrAFolderInPlaceOfAFileIsNotRead) {
  ASSERT_TRUE(cache().write("key", code_));
  fs::rename(file("key"), base_ / "elsewhere");
  fs::create_symlink(base_ / "elsewhere", file("key"));
  EXPECT_FALSE(cache().read("key"));
  fs::remove(file("key"));
  fs::create_directory(file("key"));
  EXPECT_FALSE(cache().read("key"));
  EXPECT_FALSE(cache().write("key", code_));
  EXPECT_EQ(files(), 1U);  // and nothing temporary stays
}

TEST_F(CudaCache, APlaceThatCannotBeWritten) {
  EXPECT_FALSE(DiskCache("/proc/onepass").write("key", code_));
  std::ofstream(base_ / "file") << "a file";
  EXPECT_FALSE(DiskCache((base_ / "file" / "cache").string()).write("key", code_));
  EXPECT_FALSE(DiskCache((base_ / "file").string()).write("key", code_));
  EXPECT_FALSE(DiskCache("").write("key", code_));
  EXPECT_FALSE(DiskCache("").read("key"));
  if (geteuid() == 0) return;  // root may write into read-only folders
  fs::create_directories(folder_);
  chmod(folder_.c_str(), 0500);
  EXPECT_FALSE(cache().write("key", code_));
  chmod(folder_.c_str(), 0700);
}

TEST_F(CudaCache, WritersAndReadersAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] {
      const Compiled mine{std::string(5000, static_cast<char>('a' + thread)), {}};
      for (int i = 0; i < 50; ++i) {
        if (!cache().write("key", mine)) ++wrong;
        const std::optional<Compiled> seen = cache().read("key");
        if (!seen || seen->cubin != std::string(5000, seen->cubin[0])) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(files(), 1U);
}

TEST_F(CudaCache, TheFolderComesFromTheEnvironment) {
  {
    const ScopedVariable given("ONEPASS_CACHE", "/some/where");
    EXPECT_EQ(cache_folder(), "/some/where");
  }
  const ScopedVariable given("ONEPASS_CACHE", nullptr), home("HOME", "/home/of");
  {
    const ScopedVariable caches("XDG_CACHE_HOME", "/caches");
    EXPECT_EQ(cache_folder(), "/caches/onepass");
  }
  const ScopedVariable caches("XDG_CACHE_HOME", "relative");
  EXPECT_EQ(cache_folder(), "/home/of/.cache/onepass");
  const ScopedVariable homeless("HOME", nullptr);
  EXPECT_EQ(cache_folder(), "");
}

// What the cache holds is what comes back; without it the compiler is asked again.
TEST_F(CudaCache, CompilesOnce) {
  ONEPASS_NEED_NVRTC;
  const std::string source = "extern \"C\" __global__ void nothing() {}\n";
  const Nvrtc& compiler = nvrtc().value();
  const auto compile = [&](const std::string& text, const char* architecture) {
    return compile_cached(cache(), compiler, text, architecture);
  };
  const Result<Compiled> first = compile(source, "sm_80");
  ASSERT_TRUE(first.ok()) << first.status().message;
  EXPECT_EQ(files(), 1U);

  // One compilation serves until source, architecture or compiler change.
  Nvrtc none = compiler;
  none.create_program = [](Nvrtc::Program*, const char*, const char*, int, const char**,
                           const char**) { return 1; };
  const Result<Compiled> again = compile_cached(cache(), none, source, "sm_80");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again.value().cubin, first.value().cubin);
  EXPECT_EQ(again.value().log, first.value().log);
  EXPECT_FALSE(compile_cached(cache(), none, source, "sm_90a").ok());
  EXPECT_FALSE(compile_cached(cache(), none, source + " ", "sm_80").ok());
  none.identity += " of another day";
  EXPECT_FALSE(compile_cached(cache(), none, source, "sm_80").ok());

  EXPECT_TRUE(compile(source, "sm_90a").ok());
  EXPECT_EQ(files(), 2U);
  for (const auto& entry : fs::directory_iterator(folder_)) {
    std::ofstream(entry.path(), std::ios::binary | std::ios::trunc) << "damaged";
  }
  const Result<Compiled> repaired = compile(source, "sm_80");
  ASSERT_TRUE(repaired.ok());
  EXPECT_EQ(repaired.value().cubin.substr(1, 3), "ELF");
  EXPECT_TRUE(compile_cached(DiskCache("/proc/onepass"), compiler, source, "sm_80").ok());
}

}  // namespace
}  // namespace onepass::cuda
