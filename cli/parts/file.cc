#include "cli/parts/file.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <new>
#include <string>

namespace onepass::cli {

Result<std::string> read_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return Status::invalid(path +
                           ": no file of that name; a regular file is expected; check the "
                           "path");
  }
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  std::ifstream stream(path, std::ios::binary);
  try {
    std::string bytes(error ? 0 : size, '\0');
    stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (stream && !error) return bytes;
  } catch (const std::bad_alloc&) {
    return Status{Code::runtime_error, path + ": no memory for its " + std::to_string(size) +
                                           " bytes; files that fit are allowed; use a smaller one"};
  }
  return Status{
      Code::runtime_error,
      path + ": cannot be read to its end; a readable file is expected; check its rights"};
}

Status write_file(const std::string& path, const std::string& text) {
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream.write(text.data(), static_cast<std::streamsize>(text.size()));
  stream.close();
  if (stream) return {};
  return {Code::runtime_error, path + ": " + std::to_string(text.size()) +
                                   " bytes could not be written; a folder that exists, with room, "
                                   "is needed; check the path and the disk"};
}

}  // namespace onepass::cli
