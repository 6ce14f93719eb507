#include "cli/parts/npy_header.h"

#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "cli/parts/array.h"

namespace onepass::cli {
namespace {

constexpr std::array<std::pair<std::string_view, DType>, 10> descriptions{{
    {"<f8", DType::float64},
    {"<f4", DType::float32},
    {"<f2", DType::float16},
    {"<V2", DType::bfloat16},
    {"|V2", DType::bfloat16},
    {"bfloat16", DType::bfloat16},
    {"<i8", DType::int64},
    {"<i4", DType::int32},
    {"|u1", DType::uint8},
    {"|b1", DType::boolean},
}};

std::string shown(std::string_view text) {
  constexpr std::size_t longest = 40;
  std::string result;
  for (const char c : text.substr(0, longest)) result += c >= ' ' && c <= '~' ? c : '?';
  return text.size() > longest ? result + "..." : result;
}

// A cursor over the few Python literals that a header is made of.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool take(char c) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool at_end() {
    skip_blanks();
    return at_ == text_.size();
  }
  std::optional<std::string_view> string() {
    skip_blanks();
    if (at_ == text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) return std::nullopt;
    const std::size_t close = text_.find(text_[at_], at_ + 1);
    if (close == std::string_view::npos) return std::nullopt;
    const std::string_view inside = text_.substr(at_ + 1, close - at_ - 1);
    at_ = close + 1;
    return inside;
  }
  std::optional<bool> boolean() {
    skip_blanks();
    for (const auto& [word, value] :
         {std::pair{std::string_view("True"), true}, {"False", false}}) {
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    }
    return std::nullopt;
  }
  std::optional<std::int64_t> size() {
    skip_blanks();
    std::int64_t number = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), number);
    if (error != std::errc() || number < 0) return std::nullopt;
    at_ += static_cast<std::size_t>(end - begin);
    return number;
  }
  std::string rest() const { return shown(text_.substr(at_)); }

 private:
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  std::string_view text_;
  std::size_t at_ = 0;
};

Status damaged(const Reader& reader, const std::string& expected) {
  return Status::invalid("NPY header: \"" + reader.rest() + "\" stands where " + expected +
                         " is expected; headers as numpy.save writes them are allowed; save the "
                         "array again");
}

Status read_dtype(Reader& reader, NpyHeader& header) {
  const std::optional<std::string_view> description = reader.string();
  if (!description) return damaged(reader, "a plain dtype such as '<f4'");
  for (const auto& [name, dtype] : descriptions) {
    if (*description == name) {
      header.dtype = dtype;
      return {};
    }
  }
  const bool big_endian = description->starts_with('>');
  return Status::type_error(
      "NPY header: dtype '" + shown(*description) + "'" + (big_endian ? " is big-endian" : "") +
      "; little-endian f8 f4 f2 i8 i4, u1, b1 and bfloat16 are allowed; convert the array with "
      "astype before saving it");
}

Status read_shape(Reader& reader, NpyHeader& header) {
  if (!reader.take('(')) return damaged(reader, "a shape such as (2, 3)");
  while (!reader.take(')')) {
    const std::optional<std::int64_t> size = reader.size();
    if (!size) return damaged(reader, "a size from 0 to 2^63 - 1");
    header.shape.push_back(*size);
    if (header.shape.size() > max_rank) {
      return Status::invalid("NPY header: more than " + std::to_string(max_rank) + " dims; 0 to " +
                             std::to_string(max_rank) + " dims are allowed; reshape the array");
    }
    if (reader.take(',')) continue;
    if (header.shape.size() == 1 || !reader.take(')')) return damaged(reader, "a comma or )");
    return {};
  }
  return {};
}

}  // namespace

Result<NpyHeader> parse_npy_header(std::string_view text) {
  Reader reader(text);
  NpyHeader header;
  bool has_dtype = false, has_order = false, has_shape = false;
  if (!reader.take('{')) return damaged(reader, "{");
  while (!reader.take('}')) {
    const std::optional<std::string_view> key = reader.string();
    if (!key || !reader.take(':')) return damaged(reader, "'key':");
    Status status;
    if (*key == "descr" && !std::exchange(has_dtype, true)) {
      status = read_dtype(reader, header);
    } else if (*key == "shape" && !std::exchange(has_shape, true)) {
      status = read_shape(reader, header);
    } else if (*key == "fortran_order" && !std::exchange(has_order, true)) {
      const std::optional<bool> order = reader.boolean();
      if (order) header.fortran_order = *order;
      if (!order) status = damaged(reader, "True or False");
    } else {
      status = damaged(reader,
                       "each of descr, fortran_order and shape once (found '" + shown(*key) + "')");
    }
    if (!status.ok()) return status;
    if (reader.take(',')) continue;
    if (!reader.take('}')) return damaged(reader, "a comma or }");
    break;
  }
  if (!reader.at_end()) return damaged(reader, "the end");
  if (!has_dtype || !has_order || !has_shape) {
    return Status::invalid(
        "NPY header: descr, fortran_order or shape is missing; all three are needed; save the "
        "array again");
  }
  if (checked_bytes(header.dtype, header.shape) < 0) {
    return Status::invalid(
        "NPY header: the shape has more than 2^63 - 1 bytes; shapes that fit are allowed; save "
        "the array again");
  }
  return header;
}

}  // namespace onepass::cli
