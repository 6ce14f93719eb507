#include "cuda/pack.h"

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "cuda/cache_entry.h"
#include "cuda/digest.h"
#include "cuda/driver.h"

namespace onepass::cuda {
namespace {

constexpr std::string_view magic = "onepass pack 1\n\n";
constexpr std::size_t digest_bytes = 32;
constexpr const char* allowed =
    "; a file that onepass warm wrote with -o is allowed; make it anew, or unset ONEPASS_PACK";

void add_number(std::string& bytes, std::uint64_t number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

std::optional<std::uint64_t> take_number(std::string_view& bytes) {
  std::uint64_t number = 0;
  if (bytes.size() < sizeof number) return {};
  std::memcpy(&number, bytes.data(), sizeof number);
  bytes.remove_prefix(sizeof number);
  return number;
}

std::string key_of(const std::string& source, const std::string& architecture) {
  std::string key;
  for (const std::string& option : code_options(architecture)) key += option + "\n";
  return key + source;
}

Status refused(const std::string& name, const std::string& found) {
  return {Code::runtime_error, name + ": " + found + allowed};
}

Result<Pack> read_pack(const char* path) {
  const std::string name = std::string("ONEPASS_PACK: ") + path;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return refused(name, "is no file");
  std::ifstream in(path, std::ios::binary);
  if (!in) return refused(name, std::strerror(errno));
  const std::string bytes(std::istreambuf_iterator<char>(in), {});
  Result<Pack> pack = Pack::from_bytes(name, bytes);
  // A driver may not load the code of a newer CUDA.
  if (!pack.ok() || !driver().ok() ||
      pack.value().cuda_major() <= driver().value().version / 1000) {
    return pack;
  }
  return refused(name, "is of CUDA " + std::to_string(pack.value().cuda_major()) +
                           ", the driver of CUDA " +
                           std::to_string(driver().value().version / 1000));
}

}  // namespace

void Pack::add(const std::string& source, const std::string& architecture, Compiled compiled) {
  entries_.insert_or_assign(key_of(source, architecture), std::move(compiled));
}

const Compiled* Pack::find(const std::string& source, const std::string& architecture) const {
  if (entries_.empty()) return nullptr;
  const auto found = entries_.find(key_of(source, architecture));
  return found == entries_.end() ? nullptr : &found->second;
}

std::string Pack::bytes() const {
  std::string all(magic);
  add_number(all, static_cast<std::uint64_t>(cuda_major_));
  add_number(all, entries_.size());
  for (const auto& [key, compiled] : entries_) {
    const std::string entry = to_entry(key, compiled);
    add_number(all, entry.size());
    all += entry;
  }
  return all + digest(all);
}

Result<Pack> Pack::from_bytes(const std::string& name, std::string_view bytes) {
  if (bytes.substr(0, magic.size()) != magic) return refused(name, "is no pack of this version");
  if (bytes.size() < magic.size() + digest_bytes) return refused(name, "is cut short");
  const std::string_view sum = bytes.substr(bytes.size() - digest_bytes);
  bytes.remove_suffix(digest_bytes);
  if (digest(bytes) != sum) return refused(name, "is damaged");
  bytes.remove_prefix(magic.size());
  const std::optional<std::uint64_t> major = take_number(bytes);
  Pack pack(static_cast<int>(major.value_or(0)));
  const std::optional<std::uint64_t> count = take_number(bytes);
  for (std::uint64_t i = 0; count && i < *count; ++i) {
    const std::optional<std::uint64_t> size = take_number(bytes);
    if (!size || *size > bytes.size()) return refused(name, "is damaged");
    std::optional<CacheEntry> entry = from_entry(bytes.substr(0, static_cast<std::size_t>(*size)));
    if (!entry) return refused(name, "is damaged");
    pack.entries_.insert_or_assign(std::move(entry->key), std::move(entry->compiled));
    bytes.remove_prefix(static_cast<std::size_t>(*size));
  }
  if (!count || !bytes.empty()) return refused(name, "is damaged");
  return pack;
}

const Result<Pack>& given_pack() {
  static const Result<Pack> pack = [] {
    const char* path = std::getenv("ONEPASS_PACK");
    return path == nullptr || *path == '\0' ? Result<Pack>(Pack()) : read_pack(path);
  }();
  return pack;
}

}  // namespace onepass::cuda
