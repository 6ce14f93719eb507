#include "cli/parts/npy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <istream>
#include <sstream>
#include <streambuf>
#include <vector>

#if __has_include(<xtensor/io/xnpy.hpp>)
#include <xtensor/io/xnpy.hpp>
#else
#include <xtensor/xnpy.hpp>
#endif

#include "cli/parts/file.h"
#include "cli/parts/memory.h"
#include "cli/parts/npy_header.h"

namespace onepass::cli {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::int64_t largest_header_bytes = 1 << 16;

// xtensor knows neither half floats nor bfloat16, so elements travel as unsigned integers of the
// same width and only the three letters of the dtype differ.
const char* written_dtype(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return "<f8";
    case DType::float32:
      return "<f4";
    case DType::float16:
      return "<f2";
    case DType::bfloat16:
      return "<V2";
    case DType::int64:
      return "<i8";
    case DType::int32:
      return "<i4";
    case DType::uint8:
      return "|u1";
    case DType::boolean:
      return "|b1";
  }
  return "";
}

// Calls visit with an unsigned integer of the dtype's width.
template <class Visit>
auto by_width(DType dtype, Visit visit) {
  switch (size_bytes(dtype)) {
    case 1:
      return visit(std::uint8_t{});
    case 2:
      return visit(std::uint16_t{});
    case 4:
      return visit(std::uint32_t{});
    default:
      return visit(std::uint64_t{});
  }
}

// A stream of two parts: a header of ours, then what is left of the file.
class Joined : public std::streambuf {
 public:
  Joined(std::string head, std::istream& tail) : head_(std::move(head)), tail_(tail) {
    setg(head_.data(), head_.data(), head_.data() + head_.size());
  }

 protected:
  std::streamsize xsgetn(char* to, std::streamsize count) override {
    const std::streamsize first = std::min<std::streamsize>(count, egptr() - gptr());
    std::copy_n(gptr(), first, to);
    gbump(static_cast<int>(first));
    if (first < count) tail_.read(to + first, count - first);
    return first < count ? first + tail_.gcount() : first;
  }

 private:
  std::string head_;
  std::istream& tail_;
};

std::string plain_header(const NpyHeader& header) {
  std::string text =
      "{'descr': '" +
      by_width(header.dtype,
               [](auto word) {
                 return std::string(sizeof(word) == 1 ? "|u" : "<u") + std::to_string(sizeof(word));
               }) +
      "', 'fortran_order': " + (header.fortran_order ? "True" : "False") + ", 'shape': (";
  for (const std::int64_t size : header.shape) text += std::to_string(size) + ",";
  text += ")}\n";
  const char length[2] = {static_cast<char>(text.size() & 255),
                          static_cast<char>(text.size() >> 8)};
  return std::string(magic) + '\1' + '\0' + std::string(length, 2) + text;
}

// Strides of the file's order, in elements. Sizes are known to fit.
TensorView view_of(const NpyHeader& header, void* data) {
  std::vector<std::int64_t> strides(header.shape.size(), 1);
  std::int64_t step = 1;
  const std::size_t rank = header.shape.size();
  for (std::size_t i = 0; i < rank; ++i) {
    const std::size_t dim = header.fortran_order ? i : rank - 1 - i;
    strides[dim] = step;
    step *= std::max<std::int64_t>(header.shape[dim], 1);
  }
  return {data, header.dtype, header.shape, strides};
}

Status read_failed(const std::string& what) {
  return Status::invalid(what +
                         "; whole NPY files are allowed; save the array again with numpy.save");
}

Result<NpyHeader> read_header(std::istream& stream, std::int64_t file_bytes,
                              std::int64_t& data_bytes) {
  char start[12] = {};
  stream.read(start, 8);
  if (!stream || std::string_view(start, magic.size()) != magic) {
    return read_failed("not an NPY file: it does not begin with \\x93NUMPY");
  }
  const int version = start[6];
  if (version < 1 || version > 3 || start[7] != 0) {
    return read_failed("NPY version " + std::to_string(version & 255) + "." +
                       std::to_string(start[7] & 255) + " instead of 1.0, 2.0 or 3.0");
  }
  const int length_bytes = version == 1 ? 2 : 4;
  stream.read(start + 8, length_bytes);
  std::int64_t header_bytes = 0;
  for (int i = 0; i < length_bytes; ++i) {
    header_bytes |= static_cast<std::int64_t>(static_cast<unsigned char>(start[8 + i])) << (8 * i);
  }
  data_bytes = file_bytes - 8 - length_bytes - header_bytes;
  if (!stream || header_bytes > largest_header_bytes || data_bytes < 0) {
    return read_failed("the file ends inside its header (of " + std::to_string(header_bytes) +
                       " bytes)");
  }
  std::string text(static_cast<std::size_t>(header_bytes), '\0');
  stream.read(text.data(), header_bytes);
  if (!stream) return read_failed("the file ends inside its header");
  return parse_npy_header(text);
}

Result<Array> read(std::istream& stream, std::int64_t file_bytes) {
  std::int64_t data_bytes = 0;
  const Result<NpyHeader> parsed = read_header(stream, file_bytes, data_bytes);
  if (!parsed.ok()) return parsed.status();
  const NpyHeader& header = parsed.value();
  const std::int64_t bytes = checked_bytes(header.dtype, header.shape);
  const std::string described = view_of(header, nullptr).describe();
  if (bytes != data_bytes) {
    return read_failed(std::to_string(data_bytes) + " bytes of data where " + described + " has " +
                       std::to_string(bytes));
  }
  if (bytes > available_memory_bytes()) {
    return Status{Code::runtime_error, described + " needs " + std::to_string(bytes) +
                                           " bytes; arrays that fit into the memory that is free "
                                           "are allowed; use a smaller one"};
  }
  if (bytes == 0) return Array{zeros(header.dtype, header.shape).memory, view_of(header, nullptr)};
  Joined joined(plain_header(header), stream);
  std::istream checked(&joined);
  Array array = by_width(header.dtype, [&](auto word) {
    auto loaded = xt::load_npy<decltype(word)>(checked);
    auto held = std::make_shared<decltype(loaded)>(std::move(loaded));
    return Array{std::shared_ptr<void>(held, held->data()), view_of(header, held->data())};
  });
  if (!checked) return read_failed("the file could not be read to its end");
  const auto* values = array.data<const std::uint8_t>();
  if (header.dtype == DType::boolean &&
      std::any_of(values, values + bytes, [](std::uint8_t value) { return value > 1; })) {
    return read_failed("bool data with a byte other than 0 and 1");
  }
  return array;
}

Status with_path(const std::string& path, const Status& status) {
  return {status.code, path + ": " + status.message};
}

}  // namespace

Result<Array> parse_npy(std::string_view bytes) {
  std::istringstream stream{std::string(bytes)};
  return read(stream, static_cast<std::int64_t>(bytes.size()));
}

Result<Array> read_npy(const std::string& path) {
  if (Status s = check_regular(path, "an NPY file"); !s.ok()) return s;
  std::error_code error;
  const auto file_bytes = static_cast<std::int64_t>(std::filesystem::file_size(path, error));
  std::ifstream stream(path, std::ios::binary);
  if (error || !stream) {
    return Status{Code::runtime_error,
                  path + ": cannot be opened; a readable NPY file is expected; check its rights"};
  }
  try {
    Result<Array> array = read(stream, file_bytes);
    return array.ok() ? array : Result<Array>(with_path(path, array.status()));
  } catch (const std::bad_alloc&) {
    return Status{Code::runtime_error, path + ": no memory for its " + std::to_string(file_bytes) +
                                           " bytes; files that fit are allowed; use a smaller one"};
  }
}

std::string npy_bytes(const TensorView& view) {
  const std::vector<std::size_t> shape(view.shape.begin(), view.shape.begin() + view.rank);
  std::string bytes = by_width(view.dtype, [&](auto word) {
    auto* data = static_cast<decltype(word)*>(view.data);
    const auto elements = static_cast<std::size_t>(view.elements());
    return xt::dump_npy(xt::adapt(data, elements, xt::no_ownership(), shape));
  });
  constexpr std::size_t dtype_at = magic.size() + 4 + std::string_view("{'descr': '").size();
  bytes.replace(dtype_at, 3, written_dtype(view.dtype));
  return bytes;
}

}  // namespace onepass::cli
