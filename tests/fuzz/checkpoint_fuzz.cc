// The checkpoint reader on any bytes: a model that runs two positions, or a message.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "cli/llama/checkpoint.h"
#include "cli/llama/model.h"
#include "cli/llama/sampler.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace onepass;
  const Result<cli::llama::Checkpoint> read =
      cli::llama::parse_checkpoint({reinterpret_cast<const char*>(data), size});
  if (!read.ok()) {
    if (read.status().message.empty()) std::abort();
    return 0;
  }
  const cli::llama::Checkpoint& checkpoint = read.value();
  if (checkpoint.weights.size() * 4 + 28 != size) std::abort();
  if (checkpoint.shape.context < 2 || checkpoint.shape.head_dim() > 576) return 0;
  Exec exec;
  exec.threads = 1;
  cli::llama::Model model(checkpoint, 2, true, exec);
  const auto last = static_cast<std::int32_t>(checkpoint.shape.vocabulary - 1);
  cli::llama::Sampler sampler(0.8, 0.9, 1);
  for (const std::int32_t token : std::array{std::int32_t{0}, last}) {
    const std::int32_t next = sampler.next(model.forward(std::array{token}));
    if (next < -1 || next > last) std::abort();
  }
  return 0;
}
