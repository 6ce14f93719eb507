// Every case on every instruction set of this machine, on one thread and on two.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

#include "conformance/case.h"
#include "conformance/every_case.h"
#include "onepass/plan.h"

namespace onepass::conformance {
namespace {

// Sets ONEPASS_ISA for as long as it lives.
class ForcedIsa {
 public:
  explicit ForcedIsa(const std::string& isa) {
    if (const char* before = std::getenv("ONEPASS_ISA")) before_ = before;
    setenv("ONEPASS_ISA", isa.c_str(), 1);
  }
  ~ForcedIsa() {
    before_.empty() ? unsetenv("ONEPASS_ISA") : setenv("ONEPASS_ISA", before_.c_str(), 1);
  }

 private:
  std::string before_;
};

// Each is asked for by name: the list of usable ones leaves out those that are slower here.
std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (const Isa isa : {Isa::baseline, Isa::neon, Isa::avx2, Isa::avx512, Isa::avx512_bf16}) {
    const ForcedIsa forced(name(isa));
    if (cpu_capabilities().ok()) names.push_back(name(isa));
  }
  return names;
}

using Parameter = std::tuple<Case, std::string, int>;

class AttentionConformance : public testing::TestWithParam<Parameter> {};

TEST_P(AttentionConformance, Holds) {
  const auto& [one, isa, threads] = GetParam();
  const ForcedIsa forced(isa);
  Settings settings;
  settings.threads = threads;
  const Outcome outcome = one.run(settings);
  EXPECT_TRUE(outcome.passed) << one.about << "\n"
                              << outcome.detail << "\nrepeat: ONEPASS_ISA=" << isa
                              << " onepass check " << one.name << " --threads " << threads;
}

std::string test_name(const testing::TestParamInfo<Parameter>& info) {
  const auto& [one, isa, threads] = info.param;
  std::string text = std::string(one.name) + "_" + isa + "_threads" + std::to_string(threads);
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return text;
}

INSTANTIATE_TEST_SUITE_P(All, AttentionConformance,
                         testing::Combine(testing::ValuesIn(cases()),
                                          testing::ValuesIn(instruction_sets()),
                                          testing::Values(1, 2)),
                         test_name);

#ifdef __SANITIZE_ADDRESS__
constexpr std::int64_t random_problems = 100;
#else
constexpr std::int64_t random_problems = 2000;
#endif

TEST(RandomSweep, ManyProblemsOfOneSeed) {
  Settings settings;
  settings.threads = 2;
  settings.seed = 1000;  // the matrix above has those from 1
  settings.count = random_problems;
  const Outcome outcome = random_sweep(settings);
  EXPECT_TRUE(outcome.passed) << outcome.detail;
  std::printf("%s\n", outcome.detail.c_str());
}

}  // namespace
}  // namespace onepass::conformance
