#include "cli/parts/outputs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "onepass/status.h"

namespace onepass::cli {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(Code code, const std::string& argument, const std::string& path,
                         const std::string& rest) {
  throw Error({code, argument + ": " + (path.empty() ? "\"\"" : path) + rest});
}

// The file behind links, be it there or not.
fs::path resolved(const std::string& path) {
  constexpr int most_links = 40;
  std::error_code error;
  fs::path end = fs::absolute(path, error);
  for (int links = 0; links < most_links && fs::is_symlink(end, error); ++links) {
    end = end.parent_path() / fs::read_symlink(end, error);
  }
  const fs::path found = fs::weakly_canonical(end, error);
  return error ? end : found;
}

// By what they are, not by how they are spelled: links and `./` count.
bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  return fs::equivalent(a, b, error) || resolved(a) == resolved(b);
}

// Devices, pipes, and names of this process's open files, must not be replaced.
bool written_directly(const std::string& path, const fs::file_status& status) {
  if (fs::exists(status) && !fs::is_regular_file(status)) return true;
  std::error_code error;
  const std::string spelled = fs::absolute(path, error).lexically_normal().string();
  return spelled.starts_with("/dev/std") || spelled.starts_with("/dev/fd/") ||
         spelled.starts_with("/proc/");
}

[[noreturn]] void refuse_write(const std::string& argument, const std::string& path, int error) {
  refuse(Code::runtime_error, argument, path,
         std::string(": cannot be written (") + std::strerror(error) +
             "); a file in a folder that exists, with rights and room, is allowed; name another or "
             "make room");
}

// 0 or errno.
int write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) return errno;
    if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

int write_and_close(int file, std::string_view bytes) {
  if (file < 0) return errno;
  const int failed = write_all(file, bytes);
  const int closed = ::close(file) == 0 ? 0 : errno;
  return failed != 0 ? failed : closed;
}

}  // namespace

Outputs::~Outputs() {
  for (const Target& target : targets_) {
    if (!target.part.empty()) ::unlink(target.part.c_str());
  }
}

void Outputs::reads(const std::string& argument, const std::string& path) {
  inputs_.push_back({argument, path});
}

void Outputs::claim(const std::string& argument, const std::string& path) {
  if (path.empty()) {
    refuse(Code::invalid_argument, argument, path,
           "; the name of a file is allowed; write one or leave the option out");
  }
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) {
    refuse(Code::invalid_argument, argument, path,
           ": is a folder; a file is allowed; name a file in it");
  }
  if (status.type() == fs::file_type::none) refuse_write(argument, path, error.value());
  const auto refuse_same = [&](const std::string& other) {
    refuse(Code::invalid_argument, argument, path,
           ": is the file of " + other + "; a file of its own is allowed; name another");
  };
  for (const Input& input : inputs_) {
    if (same_file(path, input.path)) refuse_same(input.argument);
  }
  for (const Target& target : targets_) {
    if (same_file(path, target.path)) refuse_same(target.argument);
  }
  Target target{argument, path, "", "", ""};
  if (fs::exists(status) && ::access(path.c_str(), W_OK) != 0) refuse_write(argument, path, errno);
  if (!written_directly(path, status)) {
    target.place = resolved(path).string();
    const std::string folder = fs::path(target.place).parent_path().string();
    if (::access(folder.c_str(), W_OK | X_OK) != 0) refuse_write(argument, path, errno);
  }
  targets_.push_back(std::move(target));
}

void Outputs::put(const std::string& path, std::string_view bytes) {
  const auto found = std::find_if(targets_.begin(), targets_.end(),
                                  [&](const Target& target) { return target.path == path; });
  if (found == targets_.end()) {
    refuse(Code::runtime_error, "outputs", path,
           ": was never claimed; claimed paths are allowed; claim it first");
  }
  if (found->place.empty()) {
    found->bytes = bytes;
    return;
  }
  found->part =
      (fs::path(found->place).parent_path() /
       (".onepass-" + std::to_string(::getpid()) + "-" + std::to_string(found - targets_.begin())))
          .string();
  ::unlink(found->part.c_str());  // of a process of that number that was killed
  const int file = ::open(found->part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  // A file that is replaced keeps its rights.
  struct stat old {};
  if (file >= 0 && ::stat(found->place.c_str(), &old) == 0) ::fchmod(file, old.st_mode & 07777);
  if (const int failed = write_and_close(file, bytes); failed != 0) {
    refuse_write(found->argument, path, failed);
  }
}

void Outputs::commit() {
  std::fflush(stdout);  // /dev/stdout gets what was printed before
  for (const Target& target : targets_) {
    if (!target.place.empty()) continue;
    const int file = ::open(target.path.c_str(), O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC);
    if (const int failed = write_and_close(file, target.bytes); failed != 0) {
      refuse_write(target.argument, target.path, failed);
    }
  }
  for (Target& target : targets_) {
    if (target.part.empty()) continue;
    if (::rename(target.part.c_str(), target.place.c_str()) != 0) {
      refuse_write(target.argument, target.path, errno);
    }
    target.part.clear();
  }
}

void make_folder(const std::string& argument, const std::string& path) {
  if (path.empty()) {
    refuse(Code::invalid_argument, argument, path,
           "; the name of a folder is allowed; write one or leave the option out");
  }
  std::error_code error;
  fs::create_directories(path, error);
  if (!error && !fs::is_directory(path, error))
    error = std::make_error_code(std::errc::not_a_directory);
  if (!error && ::access(path.c_str(), W_OK | X_OK) != 0) {
    error = std::error_code(errno, std::generic_category());
  }
  if (error) {
    refuse(Code::runtime_error, argument, path,
           ": cannot be a folder of results (" + error.message() +
               "); a folder that exists or can be made is allowed; name another");
  }
}

}  // namespace onepass::cli
