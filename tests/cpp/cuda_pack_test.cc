// Packs of compiled kernels: every damaged byte is seen, and what is in one needs no compiler.
#include <gtest/gtest.h>

#include "cuda/device.h"
#include "cuda/pack.h"

namespace onepass::cuda {
namespace {

const Compiled code{.cubin = std::string("\x7f"
                                         "ELF\0 code",
                                         10),
                    .log = "no spills"};

Pack two_kernels() {
  Pack pack(12);
  pack.add("one", "sm_80", code);
  pack.add("one", "sm_90a", {"other code", ""});
  return pack;
}

TEST(CudaPack, KeepsSourcesByArchitecture) {
  const Result<Pack> read = Pack::from_bytes("pack", two_kernels().bytes());
  ASSERT_TRUE(read.ok()) << read.status().message;
  EXPECT_EQ(read.value().size(), 2U);
  EXPECT_EQ(read.value().cuda_major(), 12);
  const Compiled* found = read.value().find("one", "sm_80");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->cubin, code.cubin);
  EXPECT_EQ(found->log, code.log);
  EXPECT_EQ(read.value().find("one", "sm_90a")->cubin, "other code");
  EXPECT_EQ(read.value().find("one", "sm_86"), nullptr);
  EXPECT_EQ(read.value().find("two", "sm_80"), nullptr);
  EXPECT_EQ(Pack().find("one", "sm_80"), nullptr);
  EXPECT_EQ(Pack::from_bytes("pack", Pack().bytes()).value().size(), 0U);
}

TEST(CudaPack, EveryDamagedByteAndEveryCutIsSeen) {
  const std::string bytes = two_kernels().bytes();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    EXPECT_FALSE(Pack::from_bytes("pack", damaged).ok()) << "byte " << i;
    EXPECT_FALSE(Pack::from_bytes("pack", bytes.substr(0, i)).ok()) << "cut at " << i;
  }
  const Status longer = Pack::from_bytes("my pack", bytes + "x").status();
  EXPECT_EQ(longer.message.rfind("my pack: is damaged; a file that onepass warm wrote", 0), 0U)
      << longer.message;
  EXPECT_NE(Pack::from_bytes("pack", "a text").status().message.find("no pack of this version"),
            std::string::npos);
}

TEST(CudaPack, ArchitecturesHaveTheirSharedMemory) {
  for (const auto& [name, sm, kib] : {std::tuple{"sm_80", 80, 163},
                                      {"sm_86", 86, 99},
                                      {"sm_90a", 90, 227},
                                      {"sm_120", 120, 99}}) {
    const Result<Capabilities> card = capabilities_of(name);
    ASSERT_TRUE(card.ok()) << card.status().message;
    EXPECT_EQ(card.value().sm, sm);
    EXPECT_EQ(card.value().shared_bytes, kib * 1024);
    EXPECT_EQ(architecture(card.value()), name);
  }
  EXPECT_NE(capabilities_of("sm_90").status().message.find("sm_90a"), std::string::npos);
}

}  // namespace
}  // namespace onepass::cuda
