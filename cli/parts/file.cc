#include "cli/parts/file.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <new>
#include <string>

#include "cli/parts/memory.h"

namespace onepass::cli {

Status check_regular(const std::string& path, const std::string& wanted) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (std::filesystem::is_regular_file(status)) return {};
  const char* found = "is no regular file";
  if (status.type() == std::filesystem::file_type::not_found) found = "no file of that name";
  if (status.type() == std::filesystem::file_type::none) found = "cannot be looked at";
  if (std::filesystem::is_directory(status)) found = "is a folder";
  return Status::invalid((path.empty() ? "\"\"" : path) + ": " + found + "; " + wanted +
                         " is expected; check the path");
}

Result<std::string> read_file(const std::string& path) {
  if (Status s = check_regular(path, "a regular file"); !s.ok()) return s;
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  std::ifstream stream(path, std::ios::binary);
  try {
    if (!error && size > static_cast<std::uintmax_t>(available_memory_bytes())) {
      throw std::bad_alloc();
    }
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

}  // namespace onepass::cli
