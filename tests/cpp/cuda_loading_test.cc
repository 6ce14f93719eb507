// Missing pieces of CUDA: one sentence each, and the CPU goes on working.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "cuda/driver.h"
#include "cuda/nvrtc.h"
#include "cuda_here.h"
#include "scoped_variable.h"

namespace onepass::cuda {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(CudaLoading, WithoutADriver) {
  const Result<Driver> none = load_driver("libonepass_not_here.so.1");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().code, Code::runtime_error);
  EXPECT_TRUE(contains(none.status().message, "cuda: no driver (libonepass_not_here.so.1"));
  EXPECT_TRUE(contains(none.status().message, "CUDA 12.0 or newer is needed; install"));
}

TEST(CudaLoading, ALibraryThatIsNoDriver) {
  const Result<Driver> wrong = load_driver("libc.so.6");
  ASSERT_FALSE(wrong.ok());
  EXPECT_TRUE(contains(wrong.status().message, "libc.so.6 lacks cuInit"));
}

TEST(CudaLoading, NvrtcThatIsNowhere) {
  const ScopedVariable nowhere("ONEPASS_NVRTC", "/nowhere/libnvrtc.so");
  EXPECT_EQ(nvrtc_places(), std::vector<std::string>{"/nowhere/libnvrtc.so"});
  const Result<Nvrtc> none = load_nvrtc(nvrtc_places(), 0);
  ASSERT_FALSE(none.ok());
  EXPECT_TRUE(contains(none.status().message, "nvrtc: not found (/nowhere/libnvrtc.so"));
  EXPECT_TRUE(contains(none.status().message, "set ONEPASS_NVRTC"));
}

TEST(CudaLoading, NvrtcThatIsSomethingElse) {
  const Result<Nvrtc> wrong = load_nvrtc({"libc.so.6"}, 0);
  ASSERT_FALSE(wrong.ok());
  EXPECT_TRUE(contains(wrong.status().message, "libc.so.6 lacks nvrtcVersion"));
}

TEST(CudaLoading, AnNvrtcNewerThanTheDriverIsNotUsed) {
  ONEPASS_NEED_NVRTC;
  const int major = nvrtc().value().major;
  EXPECT_TRUE(load_nvrtc(nvrtc_places(), major).ok());
  const Result<Nvrtc> newer = load_nvrtc(nvrtc_places(), major - 1);
  if (newer.ok()) {
    EXPECT_LT(newer.value().major, major);
  } else {
    EXPECT_TRUE(contains(newer.status().message, "the driver of CUDA " + std::to_string(major - 1)))
        << newer.status().message;
  }
}

// The places in order; a folder counts only where a library lies in it.
TEST(CudaLoading, NvrtcIsLookedForInWheels) {
  const std::filesystem::path home =
      std::filesystem::path(testing::TempDir()) / ("onepass_env_" + std::to_string(getpid()));
  const std::filesystem::path packages = home / "lib" / "python3.12" / "site-packages" / "nvidia";
  std::vector<std::string> files;
  for (const auto& [folder, name] : {std::pair{packages / "cu13" / "lib", "libnvrtc.so.13"},
                                     {packages / "cuda_nvrtc" / "lib", "libnvrtc.so.12"}}) {
    std::filesystem::create_directories(folder);
    std::ofstream(folder / name) << "not a library";
    files.push_back((folder / name).string());
  }
  const ScopedVariable any("ONEPASS_NVRTC", nullptr);
  const ScopedVariable environment("VIRTUAL_ENV", home.c_str());
  const std::vector<std::string> places = nvrtc_places();
  ASSERT_GE(places.size(), 5U);
  EXPECT_EQ(places.front(), "libnvrtc.so.13");
  EXPECT_EQ(std::vector<std::string>(places.end() - 2, places.end()), files);
  const ScopedVariable folder("ONEPASS_NVRTC", (packages / "cu13" / "lib").c_str());
  EXPECT_EQ(nvrtc_places(), std::vector<std::string>{files[0]});
  std::filesystem::remove_all(home);
}

TEST(CudaLoading, ADeviceThatIsNotHereIsNamed) {
  const Result<Capabilities> none = cuda_capabilities(1000);
  ASSERT_FALSE(none.ok());
  const bool driver_here = driver().ok();
  EXPECT_TRUE(contains(none.status().message, driver_here ? "cuda:1000" : "cuda: no driver"))
      << none.status().message;
}

}  // namespace
}  // namespace onepass::cuda
