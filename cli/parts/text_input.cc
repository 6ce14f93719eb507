#include "cli/parts/text_input.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "cli/parts/case.h"
#include "cli/parts/matmul.h"
#include "onepass/status.h"

namespace onepass::cli {
namespace {

constexpr std::int64_t width = 128, heads = 8, kv_heads = 2, head_dim = 64;

Array embed(std::string_view text) {
  const auto length = static_cast<std::int64_t>(text.size());
  const Array table = zeros(DType::float32, std::array<std::int64_t, 2>{256, width});
  fill_normal(table.view, 1);
  Array embedded = zeros(DType::float32, std::array{length, width});
  for (std::int64_t i = 0; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[static_cast<std::size_t>(i)]);
    for (std::int64_t j = 0; j < width; ++j) {
      const double rate = std::pow(10000.0, -static_cast<double>(j / 2 * 2) / width);
      const double angle = static_cast<double>(i) * rate;
      embedded.data<float>()[i * width + j] =
          table.data<float>()[byte * width + j] +
          static_cast<float>(j % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
  return embedded;
}

// embedded times a random matrix whose entries keep the size of what they multiply.
Array project(const Array& embedded, std::int64_t out_heads, std::uint64_t seed) {
  const std::int64_t length = embedded.view.shape[0], columns = out_heads * head_dim;
  const Array matrix = zeros(DType::float32, std::array{width, columns});
  fill_normal(matrix.view, seed);
  for (std::int64_t i = 0; i < width * columns; ++i) {
    matrix.data<float>()[i] /= std::sqrt(static_cast<float>(width));
  }
  const Array packed = zeros(DType::float32, std::array{packed_floats(width, columns)});
  pack_panels(matrix.data<float>(), columns, 1, width, columns, packed.data<float>());
  Array out = zeros(DType::float32, std::array<std::int64_t, 4>{1, length, out_heads, head_dim});
  multiply(embedded.data<float>(), width, packed.data<float>(), out.data<float>(), columns, length,
           width, columns);
  return out;
}

}  // namespace

TextInput text_input(std::string_view text, std::int64_t longest) {
  text = text.substr(0, static_cast<std::size_t>(longest));
  if (text.empty()) {
    throw Error(Status::invalid(
        "--text: an empty file; a text of at least one byte is allowed; name another file"));
  }
  const Array embedded = embed(text);
  TextInput input{project(embedded, heads, 2), project(embedded, kv_heads, 3),
                  project(embedded, kv_heads, 4),
                  zeros(DType::int32, std::array{std::int64_t{1}, embedded.view.shape[0]})};
  std::int32_t paragraph = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    input.paragraph.data<std::int32_t>()[i] = paragraph;
    if (text[i] == '\n' && i + 1 < text.size() && text[i + 1] == '\n') ++paragraph;
  }
  return input;
}

}  // namespace onepass::cli
