#include "cuda/disk_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "cuda/cache_entry.h"
#include "cuda/digest.h"

namespace onepass::cuda {
namespace {

// Owned by this user and written by nobody else.
bool trusted(const struct stat& status) {
  return status.st_uid == geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool trusted_folder(const std::string& folder) {
  struct stat status {};
  return stat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && trusted(status);
}

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() { close(); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  bool opened() const { return descriptor_ >= 0; }

  bool close() {
    const int descriptor = descriptor_;
    descriptor_ = -1;
    return descriptor < 0 || ::close(descriptor) == 0;
  }

  // The whole file; nothing if it is not a trusted regular file.
  std::optional<std::string> read() const {
    struct stat status {};
    if (fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode) || !trusted(status)) return {};
    std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t count = ::read(descriptor_, bytes.data() + done, bytes.size() - done);
      if (count <= 0) return {};
      done += static_cast<std::size_t>(count);
    }
    return bytes;
  }

  bool write(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }

 private:
  int descriptor_;
};

std::string path_of(const std::string& folder, const std::string& key) {
  return folder + "/" + digest(key) + ".cubin";
}

bool make_folder(const std::string& folder) {
  if (trusted_folder(folder)) return true;
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::path(folder).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  mkdir(folder.c_str(), S_IRWXU);
  return trusted_folder(folder);
}

}  // namespace

std::optional<Compiled> DiskCache::read(const std::string& key) const {
  if (folder_.empty() || !trusted_folder(folder_)) return {};
  const File file(open(path_of(folder_, key).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file.opened()) return {};
  const std::optional<std::string> bytes = file.read();
  if (!bytes) return {};
  std::optional<CacheEntry> entry = from_entry(*bytes);
  if (!entry || entry->key != key) return {};
  return std::move(entry->compiled);
}

bool DiskCache::write(const std::string& key, const Compiled& compiled) const {
  if (folder_.empty() || !make_folder(folder_)) return false;
  // Readers see the old file or the whole new one. Each writer, thread or process, has a name of
  // its own; the last one to rename wins.
  static std::atomic<std::uint64_t> count{0};
  const std::string path = path_of(folder_, key);
  const std::string temporary =
      path + "." + std::to_string(getpid()) + "." + std::to_string(count++);
  File file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                 S_IRUSR | S_IWUSR));
  if (!file.opened()) return false;
  bool kept = file.write(to_entry(key, compiled));
  kept = file.close() && kept;
  kept = kept && std::rename(temporary.c_str(), path.c_str()) == 0;
  if (!kept) unlink(temporary.c_str());
  return kept;
}

std::string cache_folder() {
  if (const char* given = std::getenv("ONEPASS_CACHE")) return given;
  // A relative XDG_CACHE_HOME is invalid, says its specification.
  const char* caches = std::getenv("XDG_CACHE_HOME");
  if (caches != nullptr && *caches == '/') return std::string(caches) + "/onepass";
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home == '/') return std::string(home) + "/.cache/onepass";
  return {};
}

}  // namespace onepass::cuda
