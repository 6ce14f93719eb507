// The tokenizer reader on any bytes, the first two being the size of the vocabulary; what it reads
// must take any text apart and print every token.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "cli/llama/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace onepass;
  if (size < 2) return 0;
  const std::int64_t vocabulary = 1 + data[0] + 256 * data[1];
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const auto tokenizer = cli::llama::Tokenizer::parse(bytes, vocabulary);
  if (!tokenizer.ok()) {
    if (tokenizer.status().message.empty()) std::abort();
    return 0;
  }
  std::int32_t previous = 0;
  for (const std::int32_t token : tokenizer.value().encode(bytes.substr(0, 64))) {
    const bool begin = token == cli::llama::Tokenizer::begin_of_text;
    if (token < 0 || (token >= vocabulary && !begin)) std::abort();
    if (token < vocabulary) tokenizer.value().decode(previous, token);
    previous = token;
  }
  return 0;
}
